-- matrix_product from sm_80 on: the mainloop and a store. a_transposed: A is stored [inner, rows]; b_transposed: B is stored [inner, columns]; parts: out holds
-- a sum for each of several ranges of the inner size (templates/parts/product_parts.cuh).
local budget = require "gen.budget"
local portable_tile = require "gen.kernels.portable_tile"
local tile_config = require "gen.kernels.tile_config"

local kernel = {}

kernel.templates = portable_tile.templates({ "params/matrix_product" }, {
  "convert", "product_tiles", { only = "parts", "product_parts" }, "tile_store", "product_epilogue",
  { only = "targets", "target_contribution" }, "matrix_product",
})
kernel.parameters = { { "MatrixProductParams", "params" } }
kernel.derive = budget.portable_product

function kernel.check(spec, arch)
  if spec.slabs then return nil, "slabs: these kernels read A from one matrix" end
  if spec.ragged then return nil, "ragged: these kernels store each element, wherever a row ends" end
  local ok, reason = tile_config.check_parts(spec)
  if not ok then return nil, reason end
  return portable_tile.check(spec, arch, kernel.derive(spec))
end

function kernel.config(spec, n)
  return tile_config.join(portable_tile.config(spec, n), { { "int", "inner_size", 0 }, { "bool", "in_parts", spec.parts or false } },
    tile_config.product_epilogue(spec))
end

function kernel.numerics(spec)
  return ("matrix_product.r1.%s.%s.%s"):format(portable_tile.product(spec), spec.dtype, spec.arch)
end

function kernel.about(spec, n) return tile_config.about_portable(spec, n, tile_config.computes_product(spec), "column tiles") end

return kernel
