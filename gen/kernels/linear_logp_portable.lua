-- linear_logp from sm_80 on: cp.async and mma.sync, or fp32 multiply-add.
local budget = require "gen.budget"

local kernel = {}

kernel.templates = {
  "types", "linear_logp_params", "simt", "cp_async", "ldmatrix", { only = "tensor", "mma" }, { only = "f32", "tf32" }, "shared_tile",
  { only = "tensor", "tensor_product" }, { only = "exact", "exact_product" }, "schedule", "row_statistics", "linear_logp",
}
kernel.entry = "linear_logp"
kernel.parameters = { { "LinearLogpParams", "params" } }
kernel.derive = budget.portable

local vectors = { [2] = true, [4] = true, [8] = true, [16] = true }

function kernel.check(spec, arch)
  if spec.cluster ~= 1 then return nil, ("c = %d: the portable kernel has no clusters"):format(spec.cluster) end
  if spec.bm ~= 64 and spec.bm ~= 128 then return nil, ("bm = %d: 64 or 128"):format(spec.bm) end
  if spec.bv ~= 128 then return nil, ("bv = %d: 128"):format(spec.bv) end
  if not vectors[spec.vec or 16] then return nil, ("vec = %d: 2, 4 or 8 bytes (16 is not written)"):format(spec.vec) end
  if spec.vec == 16 then return nil, "vec = 16: the default, which is not written" end
  if spec.vec == 2 and spec.dtype == "f32" then return nil, "vec = 2: f32 lies at multiples of 4 bytes" end
  if spec.exact and spec.dtype ~= "f32" then return nil, ("exact: for f32 only; %s products are exact anyway"):format(spec.dtype) end
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
    { "int", "warp_rows", n.warp_rows }, { "int", "warp_columns", n.warp_columns },
    { "int", "warps_across", n.warps_across },
    { "int", "vector_bytes", spec.vec or 16 }, { "int", "fragment_columns", n.warp_columns },
  }
end

function kernel.numerics(spec)
  local product = spec.exact and "fma" or spec.dtype == "f32" and "3xtf32_m16n8k8" or "mma_m16n8k16"
  return ("linear_logp.r1.%s.%s.bv%dx2.s%d.%s"):format(product, spec.dtype, spec.bv // 2, spec.s, spec.arch)
end

return kernel
