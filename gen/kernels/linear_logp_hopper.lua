-- linear_logp on sm_90a: TMA and WGMMA.
local budget = require "gen.budget"
local wgmma = require "gen.wgmma"

local kernel = {}

kernel.templates = {
  "types", "linear_logp_params", "simt", "mbarrier", "tma", "cluster", "wgmma",
  { emit = wgmma.wrapper }, "schedule", "row_statistics", "tile_product", "linear_logp",
}
kernel.entry = "linear_logp"
kernel.parameters = {
  { "TensorMap", "hidden_map" }, { "TensorMap", "weight_map" }, { "LinearLogpParams", "params" },
}
kernel.derive = budget.hopper

function kernel.check(spec, arch)
  if spec.dtype == "f32" then return nil, "dtype = f32: WGMMA has no fp32 product; the portable kernel splits into tf32" end
  if spec.exact then return nil, "exact: for f32 only" end
  if spec.vec then return nil, "vec: TMA copies 16 bytes at a time, always" end
  if spec.bm ~= 64 and spec.bm ~= 128 then return nil, ("bm = %d: 64 or 128, one or two consumer warpgroups"):format(spec.bm) end
  if spec.bv % 64 ~= 0 or spec.bv > 256 then return nil, ("bv = %d: a multiple of 64 up to 256"):format(spec.bv) end
  if spec.cluster > 2 then return nil, ("c = %d: 1 or 2"):format(spec.cluster) end
  if spec.s < 4 then return nil, ("s = %d: at least 4"):format(spec.s) end
  if spec.stages < 2 then return nil, ("p = %d: at least 2 stages"):format(spec.stages) end
  local shared = kernel.derive(spec).shared_bytes
  if shared > arch.shared_bytes then
    return nil, ("p = %d: %d bytes of shared memory, a block has %d"):format(spec.stages, shared, arch.shared_bytes)
  end
  return true
end

function kernel.config(spec, n)
  return {
    { "int", "consumer_groups", n.consumer_groups }, { "int", "wgmma_k", n.wgmma_k },
    { "int", "producer_registers", n.producer_registers }, { "int", "consumer_registers", n.consumer_registers },
    { "int", "weight_box_columns", n.weight_box_columns }, { "int", "weight_box_rows", n.weight_box_rows },
    { "int", "fragment_columns", spec.bv },
  }
end

function kernel.numerics(spec)
  return ("linear_logp.r1.wgmma_m64n%dk16.%s.bv%d.s%d.%s"):format(spec.bv, spec.dtype, spec.bv, spec.s, spec.arch)
end

return kernel
