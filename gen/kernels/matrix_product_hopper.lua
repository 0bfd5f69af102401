-- matrix_product on sm_90a: the mainloop and a store. a_transposed: A is stored [inner, rows]; b_transposed: B is stored [inner, columns]; ragged: out's rows
-- are no multiple of 16 bytes; in_step: the launch's clusters are synchronised with one another (templates/sm90a/clusters_in_step.cuh); parts: out holds a sum
-- for each of several ranges of the inner size (templates/parts/product_parts.cuh); slabs: A may lie in slabs, and sums over parts of the inner size are added
-- to out one after the other (templates/sm90a/product_slabs.cuh).
local budget = require "gen.budget"
local tile_config = require "gen.kernels.tile_config"
local wgmma = require "gen.wgmma"

local kernel = { dependent_launch = true }

kernel.templates = {
  "types", "params/matrix_product", "simt", "convert", "mbarrier", "tma", "tma_store", "cluster", "dependent_launch", "wgmma",
  { emit = wgmma.wrapper }, "unit", "tile_product", { only = "filters", "kept_steps" }, "tile_kernel", { only = "turns", "turns" }, "tile_store",
  { only = "ragged", "ragged_store" },
  "product_tiles", "early_start", { only = "in_step", "clusters_in_step" }, { only = "parts", "product_parts" },
  { only = "slabs", "product_slabs" }, "product_epilogue", "product_targets",
  { only = "targets", "target_contribution" },
  { only = "vocabulary_targets", "streaming" }, { only = "vocabulary_targets", "vector" }, { only = "vocabulary_targets", "target_lookahead" },
  "matrix_product",
}
kernel.parameters = {
  { "TensorMap", "a_map" }, { "TensorMap", "b_map" }, { "TensorMap", "out_map" }, { "MatrixProductParams", "params" },
}

function kernel.derive(spec)
  local n = budget.with_tile_store(budget.hopper(spec))
  if spec.wg and (spec.bv == 192 and spec.cluster > 1 or spec.in_step or spec.slabs) then -- with 24 registers the producer spills
    n.producer_registers, n.consumer_registers = 40, 232
  end
  if spec.slabs and not spec.a_transposed then budget.with_sums_in_order(n) end
  return tile_config.looks_targets_up(spec) and budget.with_target_lookahead(n) or n
end

-- A lies in slabs where it is dlogit: for grad_hidden, whose sums over parts are added to out by TMA alone, and for grad_weight, where A is stored across.
local function check_slabs(spec)
  if not spec.slabs then return true end
  if spec.filter or spec.in_step or spec.parts then return nil, "slabs: a filter, clusters in step or parts of their own count steps of one slab" end
  if spec.a_transposed then
    if spec.targets == "in_columns" then return nil, "slabs: A is not dlogit, where the targets are in columns" end
    return true
  end
  if not spec.adds or spec.out ~= "f32" or spec.targets or spec.ragged then
    return nil, "slabs: sums in f32 that are added to out, without targets and in rows that end within 16 bytes, or A stored [inner, rows]"
  end
  return true
end

function kernel.check(spec, arch)
  if spec.dtype == "f32" then return nil, "f32: WGMMA reads tf32 only along the inner size" end
  if spec.vec then return nil, ("vec = %d: TMA copies 16 bytes at a time, always"):format(spec.vec) end
  if spec.bm ~= 64 and spec.bm ~= 128 then return nil, ("bm = %d: 64 or 128, one or two consumer warpgroups"):format(spec.bm) end
  if spec.wg then
    if spec.wg ~= 128 or spec.bm ~= 128 then return nil, ("bm = %d, wg = %d: 128 rows for each warpgroup, where two take turns"):format(spec.bm, spec.wg) end
    if spec.bv ~= 128 and spec.bv ~= 192 then return nil, ("bv = %d: 128 or 192 where warpgroups take turns"):format(spec.bv) end
    if spec.bv == 192 and spec.targets and not spec.b_transposed then
      return nil, "bv = 192: more accumulators than registers, with targets whose rows lie across"
    end
    if spec.bv == 192 and spec.targets == "in_columns" and not tile_config.has_registers_for_wide_columns(spec) then
      return nil, "bv = 192: more accumulators than registers, with targets in columns, but for clusters of two that do not keep in step and store 16 bits "
        .. "into rows that do not end within 16 bytes"
    end
    if spec.bv == 192 and spec.cluster > 1 and spec.ragged and spec.adds and spec.out ~= "f32" then
      return nil, "bv = 192, c = 2: more accumulators than registers, where 16 bits are added to rows that end within 16 bytes"
    end
    if spec.bv == 192 and spec.cluster > 1 and spec.targets == "in_rows" and (spec.out == "f32" or spec.ragged) then
      return nil, "bv = 192, c = 2: more accumulators than registers, where targets are looked up for fp32 or for rows that end within 16 bytes"
    end
    if spec.bv == 192 and spec.cluster == 1 and spec.in_step and (spec.adds or spec.ragged and spec.targets == "in_rows") then
      return nil, "bv = 192, c = 1: more accumulators than registers, where clusters keep in step and a sum is added or rows with targets end within 16 bytes"
    end
    if spec.bv == 192 and spec.slabs and spec.a_transposed and (spec.cluster > 1 or spec.out == "f32" or spec.ragged) then
      return nil, "bv = 192: more accumulators than registers, where A lies in slabs, but for single blocks that store 16 bits into rows that do not end "
        .. "within 16 bytes"
    end
    if spec.filter then return nil, "wg = 128: a filter passes steps over, of 64 rows a warpgroup" end
  elseif spec.bv ~= 128 and spec.bv ~= 256 and not (spec.bv == 64 and spec.bm == 64 and not tile_config.looks_targets_up(spec)) then
    return nil, ("bv = %d: 128 or 256, and 64 with 64 rows, for grad_hidden"):format(spec.bv)
  end
  local ok, reason = tile_config.check_parts(spec)
  if not ok then return nil, reason end
  ok, reason = check_slabs(spec)
  if not ok then return nil, reason end
  if spec.filter and spec.in_step then return nil, "in_step: a filter passes steps over, each cluster others" end
  if spec.cluster > 2 then return nil, ("c = %d: 1 or 2"):format(spec.cluster) end
  if spec.stages < 2 then return nil, ("p = %d: at least 2 stages"):format(spec.stages) end
  return budget.check_shared(spec, kernel.derive(spec), arch)
end

function kernel.config(spec, n)
  return tile_config.join(tile_config.tile(spec, n), tile_config.hopper(spec, n, 1), {
    { "int", "inner_size", 0 }, { "bool", "filters", spec.filter or false }, { "bool", "keeps_in_step", spec.in_step or false },
    { "bool", "in_parts", spec.parts or false }, { "bool", "in_slabs", spec.slabs or false },
    { "bool", "out_is_ragged", spec.ragged or false },
  }, tile_config.product_epilogue(spec))
end

function kernel.numerics(spec)
  return ("matrix_product.r1.wgmma_k16.%s.%s"):format(spec.dtype, spec.arch)
end

function kernel.about(spec, n) return tile_config.about_hopper(spec, n, tile_config.computes_product(spec), "column tiles") end

return kernel
