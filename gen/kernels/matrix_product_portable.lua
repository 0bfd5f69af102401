-- matrix_product from sm_80 on: linear_logp's mainloop with a store behind it. km: left lies [inner, rows]; kn: right lies [inner, columns].
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local portable_tile = require "gen.kernels.portable_tile"
local tile_config = require "gen.kernels.tile_config"

local kernel = {}

kernel.templates = portable_tile.templates({ "params/matrix_product", "counted" }, {
  "convert", "product_tiles", "product_walk", "tile_store", "scale_product", "target_terms", "matrix_product",
})
kernel.entry = "matrix_product"
kernel.parameters = { { "MatrixProductParams", "params" } }
kernel.derive = budget.portable_product

function kernel.check(spec, arch) return portable_tile.check(spec, arch, kernel.derive(spec)) end

function kernel.config(spec, n)
  return tile_config.join(portable_tile.config(spec, n, spec.km, spec.kn), {
    { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false },
    { "int", "terms_along", tile_config.terms[spec.terms or "none"] },
  })
end

function kernel.numerics(spec)
  return ("matrix_product.r1.%s.%s.%s"):format(portable_tile.product(spec), spec.dtype, spec.arch)
end

return kernel
