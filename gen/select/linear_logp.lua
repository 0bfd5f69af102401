-- linear_logp: from a problem and a device to variants. BV and the splits, which decide a row's bits, never look at N or the device's size.
local select = require "gen.select"

local linear_logp = {}

-- Rows of a problem up to which a tile is taken. A call without a plan has one for 64, 128 or more.
linear_logp.hopper_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 4 },
  { rows = 128,       bm = 128, cluster = 1, stages = 4 },
  { rows = math.huge, bm = 128, cluster = 2, stages = 4 },
}
-- Two warpgroups that take turns with tiles of 128 x 168: one's sums lie under the other's products. With few rows there is a tile for one of them
-- alone; then they share its rows, for the same bits. 168 columns rather than 192 or 176, which are 1 % faster with many rows: most large vocabularies then
-- make nearly whole rounds of 132 tiles, and at N <= 128 there is nothing else to do meanwhile (128256: 764 tiles, 5.8 rounds; of 192 5.06, in six).
-- Beside 128 x 256, whose rows they share: bench/results/NOTES.md.
local turn_columns = 168
local turn_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 6 },
  { rows = 128,       bm = 128, cluster = 1, stages = 5 },
  { rows = math.huge, bm = 128, wg = 128, cluster = 1, stages = 4 },
}
-- The same of kernels that store their tiles, in boxes of 64 columns.
linear_logp.stored_turn_columns = 192
local stored_turn_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 6 },
  { rows = 128,       bm = 128, cluster = 1, stages = 4 },
  { rows = math.huge, bm = 128, wg = 128, cluster = 1, stages = 4 },
}
-- Bytes of A's rows that a launch of them keeps in the L2 while B streams past. Other launches keep 32 MiB.
local turn_group_bytes = 16 << 20
-- fp32, with as many columns as the registers of accumulators, a stage's sums and A's parts allow: what is read and split of A and B a product falls with them.
local f32_columns = 168
local hopper_f32_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 3 },
  { rows = math.huge, bm = 128, cluster = 1, stages = 3 },
}
linear_logp.portable_tiles = {
  { rows = 64,        bm = 64,  cluster = 1, stages = 4 },
  { rows = math.huge, bm = 128, cluster = 1, stages = 4 },
}

-- Big splits of the vocabulary: the multiprocessors of an H100 or H200, and of an A100. On other GPUs the same numbers hold, and so do a row's bits.
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

-- With these three a warpgroup of 128 rows has too few registers: two of 64 then share a tile's rows, for the same bits.
local function must_share(p) return p.bias_dtype and p.softcap and p.argmax end

local function turn_width(p) return p.saved_exp and linear_logp.stored_turn_columns or turn_columns end

-- What the accumulators of so many columns leave registers for, without spills.
local function can_take_turns(p)
  if p.dtype == "f32" then return false end
  if p.saved_exp then return not (p.bias_dtype or p.entropy) end
  return not (p.dv or p.bias_dtype and p.logit_sum and p.class_weights)
end

-- As many row groups as fit, in equal parts of those of the problem.
function linear_logp.turn_group(p, tile)
  local rows = tile.bm * tile.cluster
  local row_groups, fit = (p.n + rows - 1) // rows, math.max(1, turn_group_bytes // (rows * p.d * p.element_bytes))
  local parts = (row_groups + fit - 1) // fit
  return (row_groups + parts - 1) // parts
end

-- Behind the tile kernel. A shard of the vocabulary has its targets looked up before, and leaves its rows to a merge.
local function others_for(p, arch_name)
  local combine = { role = "combine", operator = p.vocab_total and "linear_logp_partials" or "linear_logp_combine", bm = 8, argmax = p.argmax,
                    entropy = p.entropy, logit_sum = p.logit_sum, arch = arch_name }
  if not p.vocab_total then return combine end
  return combine, { role = "shard_targets", operator = "linear_logp_shard_targets", arch = arch_name },
    { role = "merge", operator = "linear_logp_merge", arch = arch_name }
end

-- The largest copy that addresses and both row strides allow.
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
  local turns = can_take_turns(p)
  local tile = linear_logp.tile_for(turns and (p.saved_exp and stored_turn_tiles or turn_tiles) or f32 and hopper_f32_tiles or linear_logp.hopper_tiles,
    turns and must_share(p) and math.min(p.n, 128) or p.n)
  local spec = base_spec(p, tile)
  spec.group = tile.wg and linear_logp.turn_group(p, tile)
  spec.bv, spec.s, spec.arch = f32 and f32_columns or turns and turn_width(p) or 256, hopper_splits, arch_name
  return select.of(p, "sm_90a", { spec, others_for(p, arch_name) })
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

-- Problems whose kernels a prebuild makes, each with one option. hidden_sizes: nil for the common ones.
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
