-- The derivatives of the loss by a chunk of the logits, from sm_80 on: linear_logp's mainloop with another epilogue and a store.
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local portable_tile = require "gen.kernels.portable_tile"
local tile_config = require "gen.kernels.tile_config"

local kernel = {}

kernel.templates = portable_tile.templates({ "params/linear_logp_backward" }, {
  "convert", "product_tiles", "tile_store", "logit_bounds", "row_offset", { only = "softcap", "softcap" }, "local_memory",
  "values_in_memory", "tile_grad_logits", "linear_logp_grad_logits",
})
kernel.parameters = { { "GradLogitsParams", "params" } }
kernel.derive = budget.portable_product

function kernel.check(spec, arch) return portable_tile.check(spec, arch, kernel.derive(spec)) end

function kernel.config(spec, n)
  return tile_config.join(portable_tile.config(spec, n), tile_config.options(spec), {
    { "using", "out_element", cxx.types[spec.dtype] }, { "bool", "adds", false },
  })
end

function kernel.numerics(spec)
  return ("linear_logp_grad_logits.%s.%s.%s.%s"):format(spec.softcap and "r3" or "r2", portable_tile.product(spec), spec.dtype, spec.arch)
end

function kernel.about(spec, n) return tile_config.about_portable(spec, n, tile_config.computes_grad_logits(spec), "column tiles") end

return kernel
