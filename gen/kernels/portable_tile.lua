-- What the portable tile kernels share: cp.async and mma.sync, or fp32 multiply-add, on tiles of 64 or 128 rows by 128 columns.
local budget = require "gen.budget"
local tile_config = require "gen.kernels.tile_config"

local portable_tile = {}

-- The templates up to the mainloop, which come after the parameters and before the epilogue.
local mainloop = {
  "simt", "cp_async", "ldmatrix", { only = "tensor", "mma" }, { only = "f32", "tf32" }, "shared_tile",
  { only = "tensor", "tensor_product" }, { only = "exact", "exact_product" }, "unit", "tile_product", "tile_kernel",
}

-- params: the parameters' templates; own: what follows the mainloop.
function portable_tile.templates(params, own)
  return tile_config.join({ "types" }, params, mainloop, own)
end

local vectors = { [2] = true, [4] = true, [8] = true, [16] = true }

-- n: what the kernel derives.
function portable_tile.check(spec, arch, n)
  if spec.wg then return nil, ("wg = %d: the portable kernel has warps, not warpgroups"):format(spec.wg) end
  if spec.filter then return nil, "filter: the portable kernel has none" end
  if spec.cluster ~= 1 then return nil, ("c = %d: the portable kernel has no clusters"):format(spec.cluster) end
  if spec.bm ~= 64 and spec.bm ~= 128 then return nil, ("bm = %d: 64 or 128"):format(spec.bm) end
  if spec.bv ~= 128 then return nil, ("bv = %d: 128"):format(spec.bv) end
  if not vectors[spec.vec or 16] then return nil, ("vec = %d: 2, 4 or 8 bytes (16 is not written)"):format(spec.vec) end
  if spec.vec == 16 then return nil, "vec = 16: the default, which is not written" end
  if spec.vec == 2 and spec.dtype == "f32" then return nil, "vec = 2: f32 lies at multiples of 4 bytes" end
  if spec.exact and spec.dtype ~= "f32" then return nil, ("exact: for f32 only; %s products are exact anyway"):format(spec.dtype) end
  if spec.stages < 2 then return nil, ("p = %d: at least 2 stages"):format(spec.stages) end
  return budget.check_shared(spec, n, arch)
end

function portable_tile.config(spec, n)
  return tile_config.join(tile_config.tile(spec, n), {
    { "int", "warp_rows", n.warp_rows }, { "int", "warp_columns", n.warp_columns }, { "int", "warps_across", n.warps_across },
    { "int", "vector_bytes", spec.vec or 16 }, { "int", "fragment_columns", n.warp_columns },
  })
end

-- The instruction that multiplies: what decides a product's bits.
function portable_tile.product(spec)
  return spec.exact and "fma" or spec.dtype == "f32" and "3xtf32_m16n8k8" or "mma_m16n8k16"
end

return portable_tile
