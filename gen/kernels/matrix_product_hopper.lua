-- matrix_product on sm_90a: linear_logp's mainloop with a store behind it. km: left lies [inner, rows]; kn: right lies [inner, columns].
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local tile_config = require "gen.kernels.tile_config"
local wgmma = require "gen.wgmma"

local kernel = {}

-- The mainloop's words for the operands: hidden is the left one, weight the right one.
local function mainloop(spec)
  return { dtype = spec.dtype, bm = spec.bm, bv = spec.bv, cluster = spec.cluster, stages = spec.stages, km = spec.km, dv = spec.kn, arch = spec.arch }
end

kernel.templates = {
  "types", "params/matrix_product", "counted", "simt", "convert", "mbarrier", "tma", "tma_store", "cluster", "dependent_launch", "wgmma",
  { emit = function(spec) return wgmma.wrapper(mainloop(spec)) end }, "product_tiles", "tile_product", "tile_store", "scale_product",
  { only = "filters", "kept_steps" }, "streaming", "vector", "target_terms", "product_terms", "matrix_product",
}
kernel.entry = "matrix_product"
kernel.parameters = {
  { "TensorMap", "left_map" }, { "TensorMap", "right_map" }, { "TensorMap", "out_map" }, { "MatrixProductParams", "params" },
}

function kernel.derive(spec) return budget.with_product_terms(budget.with_tile_store(budget.hopper(mainloop(spec)))) end

kernel.dependent_launch = true

function kernel.check(spec, arch)
  if spec.dtype == "f32" then return nil, "f32: WGMMA reads tf32 only along the inner size" end
  if spec.vec then return nil, ("vec = %d: TMA copies 16 bytes at a time, always"):format(spec.vec) end
  if spec.bm ~= 64 and spec.bm ~= 128 then return nil, ("bm = %d: 64 or 128, one or two consumer warpgroups"):format(spec.bm) end
  if spec.bv % 128 ~= 0 or spec.bv > 256 then return nil, ("bv = %d: 128 or 256"):format(spec.bv) end
  if spec.cluster > 2 then return nil, ("c = %d: 1 or 2"):format(spec.cluster) end
  if spec.stages < 2 then return nil, ("p = %d: at least 2 stages"):format(spec.stages) end
  return budget.check_shared(spec, kernel.derive(spec), arch)
end

function kernel.config(spec, n)
  return tile_config.join(tile_config.tile(spec, n, spec.km, spec.kn), tile_config.hopper(spec, n, 1), {
    { "int", "hidden_size", 0 }, { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false },
    { "bool", "filters", spec.filter or false }, { "int", "terms_along", tile_config.terms[spec.terms or "none"] },
  })
end

function kernel.numerics(spec)
  return ("matrix_product.r1.wgmma_m64n%dk16.%s.%s"):format(spec.bv, spec.dtype, spec.arch)
end

return kernel
