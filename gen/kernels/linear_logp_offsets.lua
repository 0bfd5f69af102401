-- The offsets of linear_logp_save_exp's rows on sm_90a: linear_logp's mainloop with a tile of the columns that decide on the offsets.
local budget = require "gen.budget"
local tile_config = require "gen.kernels.tile_config"
local wgmma = require "gen.wgmma"

local kernel = { dependent_launch = true }

-- Rows of a block: no more than any tile of linear_logp_save_exp has, because each block clears its rows' entry of block_overflow. Columns: those that
-- row_statistics.cuh takes an offset from.
kernel.rows, kernel.columns = 64, 64

kernel.templates = tile_config.join({
  "types", "params/linear_logp", "target", "simt", "mbarrier", "tma", "cluster", "dependent_launch", "wgmma", { emit = wgmma.wrapper }, "unit",
  "tile_product", "tile_kernel",
}, tile_config.statistics_templates, { "saved_exp_statistics", "statistics_kernel", "linear_logp_offsets" })
kernel.parameters = {
  { "TensorMap", "hidden_map" }, { "TensorMap", "weight_map" }, { "LinearLogpParams", "params" },
}

function kernel.derive(spec) return budget.hopper(spec) end

function kernel.check(spec, arch)
  if arch.kernels ~= "hopper" then return nil, ("%s: the portable kernel finds the offsets itself"):format(spec.arch) end
  if spec.dtype ~= "bf16" then return nil, ("%s: 2^(z2 - k) needs the range of bf16"):format(spec.dtype) end
  if spec.bm ~= kernel.rows then return nil, ("bm = %d: wanted %d"):format(spec.bm, kernel.rows) end
  if spec.bv ~= kernel.columns then return nil, ("bv = %d: wanted %d"):format(spec.bv, kernel.columns) end
  if spec.cluster ~= 1 then return nil, ("c = %d: wanted 1"):format(spec.cluster) end
  if spec.stages < 2 then return nil, ("p = %d: at least 2 stages"):format(spec.stages) end
  return budget.check_shared(spec, kernel.derive(spec), arch)
end

function kernel.config(spec, n)
  local packed = setmetatable({ packed = true }, { __index = spec })
  return tile_config.join(tile_config.tile(spec, n), tile_config.options(packed), tile_config.hopper(spec, n, n.steps_together))
end

function kernel.numerics(spec)
  return ("linear_logp_offsets.r1.wgmma_m64n%dk16.%s.%s"):format(spec.bv, spec.dtype, spec.arch)
end

function kernel.about(spec, n)
  local about = tile_config.about_hopper(spec, n, tile_config.computes_offsets(spec), "splits")
  about.grid = ("ceil(N / %d) blocks"):format(spec.bm)
  return about
end

return kernel
