-- linear_logp on sm_90a that also stores the terms of its sums, the saved exponentials, for the gradients: linear_logp's mainloop, its statistics with given
-- offsets, and a store.
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local forward = require "gen.kernels.linear_logp_hopper"
local tile_config = require "gen.kernels.tile_config"
local wgmma = require "gen.wgmma"

local kernel = { dependent_launch = true }

kernel.templates = tile_config.join({
  "types", "params/linear_logp", "target", "simt", "convert", "mbarrier", "tma", "tma_store", "cluster", "dependent_launch", "wgmma",
  { emit = wgmma.wrapper }, "unit", "tile_product", "tile_kernel", { only = "turns", "turns" }, "tile_store",
}, tile_config.statistics_templates, { "saved_exp_statistics", "statistics_kernel", "linear_logp_save_exp" })
kernel.parameters = {
  { "TensorMap", "hidden_map" }, { "TensorMap", "weight_map" }, { "TensorMap", "saved_exp_map" }, { "LinearLogpParams", "params" },
}

function kernel.derive(spec) return budget.with_kept_statistics(budget.with_tile_store(budget.hopper(spec)), spec) end

function kernel.check(spec, arch)
  if spec.dtype ~= "bf16" then return nil, ("%s: 2^(z2 - k) needs the range of bf16"):format(spec.dtype) end
  local legal, reason = forward.check(spec, arch)
  if not legal then return nil, reason end
  return budget.check_shared(spec, kernel.derive(spec), arch)
end

function kernel.config(spec, n)
  local packed = setmetatable({ packed = true }, { __index = spec })
  return tile_config.join(tile_config.tile(spec, n), tile_config.options(packed), tile_config.hopper(spec, n, 1), {
    { "using", "out_element", cxx.types[spec.dtype] }, { "bool", "adds", false },
  })
end

function kernel.numerics(spec)
  return ("linear_logp_save_exp.r3.wgmma_m64n%dk16.%s.bv%d.s%d.%s"):format(spec.bv, spec.dtype, spec.bv, spec.s, spec.arch)
end

function kernel.about(spec, n)
  local computes = tile_config.computes_statistics(spec) .. "; and keeps the powers themselves of the first columns, with one k a row"
  return tile_config.about_hopper(spec, n, computes, "splits")
end

return kernel
