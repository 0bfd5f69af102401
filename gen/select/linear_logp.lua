-- linear_logp: from a problem and a device to variants. A tile's columns and the number of splits decide on a row's bits, so they never depend on N or on the
-- size of the device.
local select = require "gen.select"

local linear_logp = {}

-- Tiles by the problem's number of rows: the first that has `rows` for them. A call without a plan gets one for a bucket of rows, so the limits are ends of
-- buckets (runtime/core/row_buckets.h).
linear_logp.hopper_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 4 },
  { rows = 128,       bm = 128, cluster = 1, stages = 4 },
  { rows = math.huge, bm = 128, cluster = 2, stages = 4 },
}
-- Ping-pong tiles of 128 x 168: one warpgroup's epilogue overlaps the other's products. With few rows there is a tile for only one warpgroup. The two then
-- share its rows (the cooperative schedule), with the same bits.
--
-- Tiles of 192 or 176 columns are 1 % faster with many rows. With 168, most large vocabularies make nearly whole waves of 132 tiles. That matters at N <= 128,
-- where nothing else fills an incomplete wave: 128256 entries are 764 tiles, 5.8 waves; with 192 columns they would be 5.06 waves, which take as long as six.
-- bench/results/NOTES.md compares these tiles with cooperative ones of 128 x 256.
local turn_columns = 168
local turn_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 6 },
  { rows = 128,       bm = 128, cluster = 1, stages = 5 },
  { rows = math.huge, bm = 128, wg = 128, cluster = 1, stages = 4 },
}
-- The same for kernels that store their tiles. Their columns are a multiple of the 64 of a TMA box.
linear_logp.stored_turn_columns = 192
local stored_turn_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 6 },
  { rows = 128,       bm = 128, cluster = 1, stages = 4 },
  { rows = math.huge, bm = 128, wg = 128, cluster = 1, stages = 4 },
}
-- Bytes of A's rows that a launch of ping-pong tiles keeps in the L2 while B streams past. Other launches keep 32 MiB.
local turn_group_bytes = 16 << 20
-- fp32: as many columns as there are registers for accumulators, a stage's sums and A's tf32 parts. The more columns a tile has, the less of A and B is read
-- and split for each multiplication.
local f32_columns = 168
local hopper_f32_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 3 },
  { rows = math.huge, bm = 128, cluster = 1, stages = 3 },
}
linear_logp.portable_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 4 },
  { rows = math.huge, bm = 128, cluster = 1, stages = 4 },
}

-- A kernel for the columns that decide on the offsets of saved exponentials. linear_logp_save_exp could find them by a launch of its own tile, but with few
-- rows that is one block which computes while all others wait. With 4096 rows a step still takes up to 0.6 % less like this: bench/results/NOTES.md.
local offsets_tile = { bm = 64, bv = 64, cluster = 1, stages = 8 }

-- The number of big splits of the vocabulary: the number of multiprocessors of an H100 or H200, and of an A100. Other GPUs use the same numbers, so that a row
-- has the same bits there.
local hopper_splits, portable_splits = 132, 108

function linear_logp.tile_for(tiles, n)
  for _, tile in ipairs(tiles) do
    if n <= tile.rows then return tile end
  end
end

local function base_spec(p, tile)
  return {
    role = p.saved_exp and "save_exp_tile" or "tile", operator = p.saved_exp and "linear_logp_save_exp" or "linear_logp",
    dtype = p.dtype, d = p.d, bm = tile.bm, wg = tile.wg, cluster = tile.cluster, stages = tile.stages,
    dv = p.dv, bias = p.bias_dtype, softcap = p.softcap, argmax = p.argmax, entropy = p.entropy, logit_sum = p.logit_sum,
    classes = p.logit_sum and p.class_weights, packed = p.packed and not p.saved_exp,
  }
end

-- With these three options a warpgroup of 128 rows has too few registers. Then two warpgroups of 64 rows share a tile, with the same bits.
local function must_share(p) return p.bias_dtype and p.softcap and p.argmax end

local function turn_width(p) return p.saved_exp and linear_logp.stored_turn_columns or turn_columns end

-- Whether the kernel has a ping-pong variant, and enough registers in it beside the accumulators for the problem's options, without spills.
local function can_take_turns(p)
  if p.dtype == "f32" then return false end
  if p.saved_exp then return not (p.bias_dtype or p.entropy) end
  return not (p.dv or p.bias_dtype and p.logit_sum and p.class_weights)
end

-- The row groups that a launch walks together: as many as fit in turn_group_bytes, evened out so that the last group is not a small one.
function linear_logp.turn_group(p, tile)
  local rows = tile.bm * tile.cluster
  local row_groups, fit = (p.n + rows - 1) // rows, math.max(1, turn_group_bytes // (rows * p.d * p.element_bytes))
  local parts = (row_groups + fit - 1) // fit
  return (row_groups + parts - 1) // parts
end

-- The kernel that finds the rows' offsets of saved exponentials, on sm_90a.
local function offsets_spec(p, arch_name)
  local tile = offsets_tile
  return { role = "offsets", operator = "linear_logp_offsets", dtype = p.dtype, d = p.d, bm = tile.bm, bv = tile.bv, cluster = tile.cluster,
           stages = tile.stages, dv = p.dv, bias = p.bias_dtype, arch = arch_name }
end

-- The kernels beside the tile kernel. For a shard of the vocabulary the targets are looked up before it, and the rows' statistics are merged over the shards
-- after it.
local function others_for(p, arch_name)
  local combine = { role = "combine", operator = p.vocab_total and "linear_logp_partials" or "linear_logp_combine", bm = 8, argmax = p.argmax,
                    entropy = p.entropy, logit_sum = p.logit_sum, arch = arch_name }
  if not p.vocab_total then return combine end
  return combine, { role = "shard_targets", operator = "linear_logp_shard_targets", arch = arch_name },
    { role = "merge", operator = "linear_logp_merge", arch = arch_name }
end

-- The widest copy that the addresses and both row strides allow, in bytes.
local function vector_bytes(p)
  return select.vector_bytes(p.pointer_alignment, { p.hidden_stride * p.element_bytes, p.weight_stride * p.element_bytes }, 2)
end

linear_logp.hopper = select.hopper(" has no WGMMA", function(p, arch_name)
  local f32 = p.dtype == "f32"
  if f32 and p.exact then return nil, "exact fp32 takes no tensor cores" end
  if f32 and p.dv then return nil, "WGMMA reads tf32 only along D, and the weight is [D, V]" end
  local bytes = vector_bytes(p)
  if bytes ~= 16 then
    return nil, ("TMA wants addresses and row strides in multiples of 16 bytes; here they are multiples of %d"):format(bytes or 1)
  end
  if math.max(p.hidden_stride, p.weight_stride) * p.element_bytes >= select.most_map_stride then return nil, "TMA wants row strides below 2^40 bytes" end
  local turns = can_take_turns(p)
  local tile = linear_logp.tile_for(turns and (p.saved_exp and stored_turn_tiles or turn_tiles) or f32 and hopper_f32_tiles or linear_logp.hopper_tiles,
    turns and must_share(p) and math.min(p.n, 128) or p.n)
  local spec = base_spec(p, tile)
  spec.group = tile.wg and linear_logp.turn_group(p, tile)
  spec.bv, spec.s, spec.arch = f32 and f32_columns or turns and turn_width(p) or 256, hopper_splits, arch_name
  return select.of(p, "sm_90a", p.saved_exp and { spec, offsets_spec(p, arch_name), others_for(p, arch_name) } or { spec, others_for(p, arch_name) })
end)

linear_logp.portable = select.portable(function(p, arch_name)
  local bytes = vector_bytes(p)
  if not bytes or bytes < math.min(p.element_bytes, 4) then
    return nil, ("addresses and row strides are multiples of %d bytes, elements have %d"):format(bytes or 1, p.element_bytes)
  end
  local spec = base_spec(p, linear_logp.tile_for(linear_logp.portable_tiles, p.n))
  spec.bv, spec.s, spec.arch = 128, portable_splits, arch_name
  spec.vec = bytes < 16 and bytes or nil
  spec.exact = p.dtype == "f32" and p.exact or nil
  return select.of(p, "portable", { spec, others_for(p, arch_name) })
end)

-- Problems whose kernels a prebuild compiles, each with one option at most. hidden_sizes: nil for the common ones.
function linear_logp.prebuilt(dtype, hidden_sizes)
  local problems, options = {}, { "", ":argmax" }
  if dtype ~= "f32" then table.move({ ":entropy", ":softcap30", ":bias_" .. dtype, ":dv" }, 1, 4, 3, options) end
  for _, d in ipairs(hidden_sizes or select.common_hidden_sizes) do
    for _, option in ipairs(options) do
      for _, rows in ipairs { 64, 128, 4096 } do -- one for each tile
        problems[#problems + 1] = ("linear_logp:%s:n%d:d%d:v131072%s"):format(dtype, rows, d, option)
      end
    end
  end
  return problems
end

return linear_logp
