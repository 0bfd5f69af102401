-- linear_logp from sm_80 on that also stores the terms of its sums, the saved exponentials, for the gradients: the portable mainloop, statistics with given
-- offsets, and a store.
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local forward = require "gen.kernels.linear_logp_portable"
local portable_tile = require "gen.kernels.portable_tile"
local tile_config = require "gen.kernels.tile_config"

local kernel = {}

kernel.templates = portable_tile.templates({ "params/linear_logp", "target" }, tile_config.join(
  { "convert", "tile_store" }, tile_config.statistics_templates, { "saved_exp_statistics", "warp_statistics", "linear_logp_save_exp" }))
kernel.parameters = { { "LinearLogpParams", "params" } }
kernel.derive = budget.portable

function kernel.check(spec, arch)
  if spec.dtype ~= "bf16" then return nil, ("%s: 2^(z2 - k) needs the range of bf16"):format(spec.dtype) end
  return forward.check(spec, arch)
end

function kernel.config(spec, n)
  local packed = setmetatable({ packed = true }, { __index = spec })
  return tile_config.join(portable_tile.config(spec, n), tile_config.options(packed), {
    { "using", "out_element", cxx.types[spec.dtype] }, { "bool", "adds", false },
  })
end

function kernel.numerics(spec)
  return ("linear_logp_save_exp.r3.%s.%s.bv%dx2.s%d.%s"):format(portable_tile.product(spec), spec.dtype, spec.bv // 2, spec.s, spec.arch)
end

function kernel.about(spec, n)
  local computes = tile_config.computes_statistics(spec) .. "; and keeps the powers themselves of the first columns, with one k a row"
  return tile_config.about_portable(spec, n, computes, "splits")
end

return kernel
