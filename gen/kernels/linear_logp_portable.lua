-- linear_logp from sm_80 on: the portable mainloop with statistics of each row as its epilogue.
local budget = require "gen.budget"
local portable_tile = require "gen.kernels.portable_tile"
local tile_config = require "gen.kernels.tile_config"

local kernel = {}

kernel.templates = portable_tile.templates({ "params/linear_logp", "target" }, tile_config.join(tile_config.statistics_templates, { "warp_statistics", "linear_logp" }))
kernel.parameters = { { "LinearLogpParams", "params" } }
kernel.derive = budget.portable

function kernel.check(spec, arch)
  if spec.s < 4 then return nil, ("s = %d: at least 4"):format(spec.s) end
  return portable_tile.check(spec, arch, kernel.derive(spec))
end

function kernel.config(spec, n)
  return tile_config.join(portable_tile.config(spec, n), tile_config.options(spec))
end

function kernel.numerics(spec)
  return ("linear_logp.%s.%s.%s.bv%dx2.s%d.%s"):format(spec.softcap and "r4" or "r3", portable_tile.product(spec), spec.dtype, spec.bv // 2, spec.s, spec.arch)
end

function kernel.about(spec, n) return tile_config.about_portable(spec, n, tile_config.computes_statistics(spec), "splits") end

return kernel
