-- linear_logp_backward: from a problem and a device to variants. The kernels are
--   with its forward (`forward`), linear_logp's tile and combine, and offsets where these are apart;
--   valid_rows and gather, which pack the valid rows;
--   grad_logits, unless all derivatives come from saved exponentials;
--   for grad_hidden its product and hidden_finish, and between them hidden_sum, if the product is in parts;
--   for grad_weight its product and target_order, for grad_bias its sums;
--   for a shard of the vocabulary shard_targets and other_shards;
--   with a filter, on sm_90a, the count of the blocks that it kept.
local cxx = require "gen.cxx"
local linear_logp = require "gen.select.linear_logp"
local select = require "gen.select"
local tile_config = require "gen.kernels.tile_config"

local backward = {}

local tile_for, hopper_tiles, portable_tiles = linear_logp.tile_for, linear_logp.hopper_tiles, linear_logp.portable_tiles

-- The widest copy that the addresses and a row stride of so many elements allow, in bytes.
local function vector_bytes(p, stride, bytes) return select.vector_bytes(p.pointer_alignment, { stride * bytes }, 2) end

local function on(tile, spec)
  spec.bm, spec.wg, spec.bv, spec.cluster, spec.stages, spec.arch, spec.group = tile.bm, tile.wg, tile.bv, tile.cluster, tile.stages, tile.arch, tile.group
  return spec
end

-- true if rows of so many elements end within 16 bytes, all of which TMA would write; else nil.
local function is_ragged(columns, dtype) return columns * cxx.bytes[dtype] % 16 ~= 0 or nil end

-- The kernels that pack the valid rows.
local function packing(p, arch_name)
  return {
    { role = "valid_rows", operator = "linear_logp_backward_rows", dtype = p.dtype == "f16" and "f16" or nil, arch = arch_name },
    { role = "gather", operator = "linear_logp_backward_gather", dtype = p.dtype, arch = arch_name },
  }
end

-- How waves of tiles fill the multiprocessors of an H100 or H200.
local multiprocessors = 132
local function ceil_div(a, b) return (a + b - 1) // b end
local function tiles_of(rows, hidden, columns) return ceil_div(rows, 128) * ceil_div(hidden, columns) end
local function filled_waves(tiles) return tiles / ((tiles + multiprocessors - 1) // multiprocessors * multiprocessors) end

-- The number of rows, rounded up to a power of two: from 1024 on the most rows of the bucket (runtime/core/row_buckets.h), whose calls share their kernels.
local function bucket_rows(p)
  local rows = 1
  while rows < p.n do rows = rows * 2 end
  return rows
end

-- The numbers of rows by which a bucket of few rows chooses the kernels that all its calls share.
local buckets_of_few = { { most = 256, rows = { 256 } }, { most = 1024, rows = { 512, 1024 } }, { most = 2048, rows = { 2048 } } }
local function rows_of_bucket(p)
  for _, bucket in ipairs(buckets_of_few) do
    if p.n <= bucket.most then return bucket.rows end
  end
  return {}
end

-- Blocks of saved exponentials in grad_weight are multiplied by few launches, each of many blocks, in place of one for each block, between which the
-- multiprocessors wait for some 6 us: a step takes 2 to 7 % less time with 512 to 2048 rows. Not with few rows, of whose products two run side by side. Nor
-- where most clusters have no tile in the last of several waves, which the products that follow fill better. With more rows than half of D, grad_weight has
-- room for one block a launch, and nothing is gained, unless clusters without a tile of grad_hidden begin with grad_weight's. All calls that share a plan have
-- the same kernels, which launches of single blocks take, too (at most 0.5 % of a step). With a grad_bias, which reads each slab before grad_weight overwrites
-- it, products keep their order: bench/results/NOTES.md.
-- KEEP IN STEP: flp_backward_adds_blocks (runtime/operators/linear/linear_logp_backward_slab.c), flp_row_buckets_of (runtime/core/row_buckets.h).
local slabs = { full = 0.9, least_rows = 129 }
local function gains_by_slabs(rows, d, tile)
  local waves = ceil_div(rows, tile.bm * tile.cluster) * ceil_div(d, tile.bv) * tile.cluster / multiprocessors
  if waves >= math.ceil(waves) * slabs.full then return 2 * rows <= d end
  return waves > 0.5 and waves < 1
end
local function takes_slabs(p, tile)
  if p.operator ~= "linear_cross_entropy" or not p.all_saved or not (p.grad_hidden and p.grad_weight) or p.grad_bias or p.acc_weight or p.dv then return nil end
  for _, rows in ipairs(p.n >= slabs.least_rows and rows_of_bucket(p) or {}) do
    if gains_by_slabs(rows, p.d, tile) then return true end
  end
end

-- The specs of the backward's own kernels, and their tiles: tile, for kernels over N rows; gradients_tile and hidden_tile, in its place for grad_logits and for
-- grad_hidden's product, or nil; wide, for grad_weight's product, which is over V rows (wide.free: its clusters are never synchronised with one another).
-- weight_vec: bytes of a copy of the weight, nil for 16. bulk: true on sm_90a.
local function specs(p, tile, wide, weight_vec, bulk, gradients_tile, hidden_tile)
  local dtype, exact, arch_name = p.dtype, p.exact, tile.arch
  local filter = bulk and p.grad_filter_eps or nil
  local takes = bulk and takes_slabs(p, hidden_tile or tile) or nil
  local list = packing(p, arch_name)
  local function add(spec) list[#list + 1] = spec end
  if not (p.saved_exp and (p.all_saved or p.direct or p.in_forward)) then
    add(on(gradients_tile or tile, { role = "grad_logits", operator = "linear_logp_grad_logits", dtype = dtype, d = p.d, dv = p.dv, bias = p.bias_dtype,
                   softcap = p.softcap, entropy = p.g_entropy, logit_sum = p.logit_sum, classes = p.logit_sum and p.class_weights,
                   vec = weight_vec, exact = exact, filter = filter }))
  end
  if p.grad_hidden then
    local direct = p.direct -- one product over the whole vocabulary gives the packed rows; else chunks add to fp32 sums
    local whole = direct and not p.parts -- the product itself writes the packed rows; else hidden_sum adds its parts
    add(on(hidden_tile or tile, { role = "hidden_product", operator = "matrix_product", dtype = dtype, b_transposed = not p.dv or nil,
                   out = whole and p.grad_hidden or "f32", adds = not (direct or p.in_forward or p.parts) or nil,
                   ragged = bulk and whole and is_ragged(p.d, p.grad_hidden), vec = weight_vec, exact = exact, filter = filter,
                   in_step = bulk and p.hidden_first, parts = p.parts and true, slabs = takes, targets = whole and "of_rows" or nil }))
    if p.parts then
      add { role = "hidden_sum", operator = "linear_logp_backward_finish", weight = direct and dtype, dv = direct and p.dv,
            out = direct and p.grad_hidden or "f32", parts = true, arch = arch_name }
    end
    add { role = "hidden_finish", operator = "linear_logp_backward_finish", dtype = direct and p.grad_hidden, weight = not direct and dtype,
          dv = not direct and p.dv, out = p.grad_hidden, adds = p.acc_hidden, arch = arch_name }
  end
  if p.grad_weight then
    add(on(wide, { role = "weight_product", operator = "matrix_product", dtype = dtype, a_transposed = true, b_transposed = true, out = p.grad_weight,
                   adds = p.acc_weight, ragged = bulk and is_ragged(p.dv and p.v or p.d, p.grad_weight), exact = exact, filter = filter,
                   in_step = bulk and p.hidden_first and not wide.free or nil, slabs = takes,
                   targets = p.dv and "in_columns" or "in_rows" }))
    add { role = "target_order", operator = "linear_logp_backward_target_order", arch = arch_name }
  end
  if p.grad_bias then
    add { role = "bias", operator = "linear_logp_backward_bias", dtype = dtype, out = p.grad_bias, adds = p.acc_bias, arch = arch_name }
  end
  if p.vocab_total then
    add { role = "shard_targets", operator = "linear_logp_shard_targets", arch = arch_name }
    add { role = "other_shards", operator = "linear_logp_backward_other_shards", arch = arch_name }
  end
  if filter then add { role = "filter", operator = "linear_logp_backward_filter", arch = arch_name } end
  return list
end

-- linear_logp's kernels for the packed valid rows, each of which is 16-byte aligned. path: "hopper" or "portable"; changes: fields that replace p's.
function backward.packed_forward(p, capability, path, changes)
  local vector = 16 // p.element_bytes
  changes.packed, changes.hidden_stride = true, (p.d + vector - 1) // vector * vector
  return linear_logp[path](setmetatable(changes, { __index = p }), capability)
end

-- The kernels that pack the valid rows for a forward without gradients.
function backward.packing(p, forward) return select.of(p, forward.path, packing(p, forward.arch)) end

local function selected(p, capability, path, list)
  local forward, found, reason
  if p.forward then
    forward, reason = backward.packed_forward(p, capability, path, { entropy = p.g_entropy or false })
    if not forward then return nil, reason end
  end
  found, reason = select.of(p, path == "hopper" and "sm_90a" or path, list)
  return forward and found and select.join(forward, found) or found, reason
end

-- Whether grad_logits has registers for the ping-pong schedule: with at most one option that takes registers (a filter is one; class weights count as one
-- more). An element's bits are the same in any tile.
local function can_take_turns(p)
  local options = (p.grad_filter_eps and 1 or 0) + (p.bias_dtype and 1 or 0) + (p.softcap and 1 or 0) + (p.g_entropy and 1 or 0)
    + (p.logit_sum and (p.class_weights and 2 or 1) or 0)
  return options <= 1
end

-- A main gradient (fp32, accumulated) is read and written once for each chunk of rows, and a chunk's sums are short. With ping-pong tiles of 128 x 128 this
-- overlaps the other warpgroup's products. Sustained, a step is 7 % faster (18 % at D = 3072, where waves of smaller tiles are fuller, too); in burst it is 1 %
-- slower, because each tile reads more from the L2. Sums of 8,000 terms and more are stored once, and there gain and loss are equal: bench/results/NOTES.md.
local function stores_often(p) return p.acc_weight and p.grad_weight == "f32" and not p.grad_filter_eps end

-- With few rows grad_weight's sums are short, too: storing a tile takes a tenth of the time of computing it. With ping-pong tiles, a step at 1024 and 2048 rows
-- is 2 to 3 % faster sustained and 0.7 % slower in burst. At 4096 rows it is 1 to 2 % faster and 2 % slower, so neither is better. Behind grad_hidden's product
-- the same holds at up to 1024 rows, and at 2048 a step is 0.5 to 2 % slower in burst and as fast sustained: bench/results/NOTES.md.
local most_rows_of_short_sums, most_rows_of_short_sums_second = 2048, 1024
local function stores_soon(p)
  return p.n <= (p.hidden_first and most_rows_of_short_sums_second or most_rows_of_short_sums) and not p.grad_filter_eps
end

-- Targets in the columns of a [D, V] grad_weight are added one after the other, which takes 15 % of a tile's time at 8192 rows. The ping-pong schedule hides it
-- behind the other warpgroup's products: a step is 2 to 8 % faster sustained, and between 2 % faster and 2.5 % slower in burst. If grad_hidden's product takes
-- turns as well, it is another 1.4 to 4 % faster sustained, and in burst between 2.5 % slower, where all exponentials are saved, and 2 % faster:
-- bench/results/NOTES.md.
local function adds_across(p) return p.dv and not p.grad_filter_eps end

-- If [D, V] grad_weight has the whole vocabulary at once, which 192 columns divide with little waste, tiles of 192 columns read less from the L2 for a flop: a
-- step is 2 to 3 % faster in burst, on an H100 also 5 % and more sustained. With clusters synchronised with one another they would gain 1.5 % less in burst,
-- because a cluster that waits multiplies nothing: bench/results/NOTES.md.
local function is_wide_across(p)
  return adds_across(p) and p.direct and p.grad_weight
    and tile_config.has_registers_for_wide_columns { cluster = 2, out = p.grad_weight, ragged = is_ragged(p.v, p.grad_weight) }
end

-- grad_hidden has one tile for each 128 rows and 256 columns. With few rows these are fewer tiles than multiprocessors, although each sum is as long as the
-- vocabulary. Smaller tiles keep more multiprocessors busy, with the same bits: at D 2048 and 4096 a step takes 4 to 40 % less time with 256 and 512 rows, and
-- 17 and 24 % less with 64 and 128. At 1536 rows and more the difference is within 2 %: bench/results/NOTES.md.
local most_rows_of_few_tiles = 1024
local function has_few_tiles(p) return p.n <= most_rows_of_few_tiles and not p.grad_filter_eps and not p.parts end

-- With more rows, smaller tiles are faster where their waves are fuller: a step at D 2304 to 3072 takes up to 12 % less time. Not where hidden is shorter,
-- whose 48 and more tiles have grad_weight's beside them (with 32, at 2048 rows and D 512, smaller tiles are 13 % faster), nor where grad_hidden is one product
-- or comes from derivatives: bench/results/NOTES.md.
local fuller = { least_hidden = 1536, most_tiles = 32, percent = 111 }
local function has_fuller_waves(p)
  local rows = bucket_rows(p)
  local wide, small = tiles_of(rows, p.d, 256), tiles_of(rows, p.d, 128)
  return p.saved_exp and not (p.direct or p.in_forward or p.parts)
    and (wide <= fuller.most_tiles or p.d >= fuller.least_hidden and filled_waves(small) * 100 > filled_waves(wide) * fuller.percent)
end

-- A product in parts has more tiles. Up to 1024 rows they are those that keep most multiprocessors busy: with 256 rows at D 4096, V 128256 the product takes a
-- third less time than with tiles as wide as more rows have, and at D 3072 tiles of 192 columns take 15 % less. percent: the speed of a tile beside one of 256
-- columns, which reads the least from the L2 for a flop: bench/results/NOTES.md.
local tiles_of_few_in_parts = { { columns = 256, percent = 100 }, { columns = 192, percent = 99 }, { columns = 128, percent = 98 } }

-- The time of the waves of a launch, in those of one that keeps all multiprocessors busy. What a tile has behind hidden's end is no work. KEEP IN STEP:
-- filled_waves (runtime/operators/linear/linear_budget.c), the inverse, and the percents there, by which plans choose parts, and tiles for more rows.
local function time_in_parts(rows, d, parts, columns)
  local clusters = multiprocessors // 2 -- of two blocks, each of 128 rows
  return ceil_div(parts * ceil_div(rows, 256) * ceil_div(d, columns), clusters) * clusters * 256 * columns / (parts * rows * d)
end

-- The columns of the tile that takes the least time, which is added up over the bucket's rows.
local function columns_of_few_in_parts(p)
  local best, least
  for _, tile in ipairs(tiles_of_few_in_parts) do
    local time = 0
    for _, rows in ipairs(rows_of_bucket(p)) do time = time + time_in_parts(rows, p.d, p.parts, tile.columns) * 100 / tile.percent end
    if not least or time < least then best, least = tile.columns, time end
  end
  return best
end

-- Up to 128 rows, where nothing runs beside grad_hidden's product: a multiprocessor's link to the L2 bounds it, so that the tiles are as small as those that
-- still are blocks enough for all multiprocessors, one or, with 64 rows, nearly two on each. More on some would make the others wait. Where one is meant for
-- each, its stages leave no room for another: the launch before may free a few multiprocessors first, which would then take two: bench/results/NOTES.md.
-- KEEP IN STEP: cost_of_fewest (runtime/operators/linear/linear_budget.c), by which plans choose parts.
local nearly_full = 0.9
local function tile_of_hidden_alone(p, row_tiles, column_tiles, arch_name)
  local blocks, once = column_tiles * (p.parts or 1), multiprocessors -- of 128 columns
  if row_tiles > 1 then
    return 2 * blocks <= once and { bm = 64, bv = 128, cluster = 2, stages = 8, arch = arch_name }
      or { bm = 128, bv = 128, cluster = 1, stages = 6, arch = arch_name }
  end
  if 2 * blocks <= once or blocks <= once and blocks >= nearly_full * once then
    return { bm = 64, bv = 64, cluster = 1, stages = 2 * blocks <= once and 8 or 6, arch = arch_name }
  end
  return { bm = 64, bv = 128, cluster = 1, stages = blocks <= once and 8 or 4, arch = arch_name }
end

-- Up to 128 rows: a tile of one consumer warpgroup, whose stages fill a multiprocessor's shared memory. If all exponentials are saved, the products of
-- neighbouring chunks run side by side, each on multiprocessors of its own. If no four of them have room, two blocks share a multiprocessor, so that one
-- multiplies while the other waits for its turn to add to the sums: a step at 128 rows takes up to 4 % less time from D 3072 on. Other products would be 2 %
-- slower like that: bench/results/NOTES.md.
local narrow_few = { bm = 64, bv = 128, stages = 8, shared_stages = 4, most_tiles_of_four = 32 }
local function narrow_tile(p, rows, arch_name)
  local row_tiles, column_tiles = rows // narrow_few.bm, (p.d + narrow_few.bv - 1) // narrow_few.bv
  if not (p.grad_weight or p.grad_bias) and (p.parts or p.direct) then return tile_of_hidden_alone(p, row_tiles, column_tiles, arch_name) end
  local shares = p.all_saved and row_tiles * column_tiles > narrow_few.most_tiles_of_four
  return { bm = narrow_few.bm, bv = narrow_few.bv, cluster = row_tiles, stages = shares and narrow_few.shared_stages or narrow_few.stages, arch = arch_name }
end

local weight_group = 16 -- row groups that a launch of grad_weight's ping-pong tiles walks together

local function turns_tile(arch_name, group, is_wide)
  return { bm = 128, wg = 128, bv = is_wide and 192 or 128, cluster = 2, stages = is_wide and 4 or 5, free = is_wide, arch = arch_name, group = group }
end

backward.hopper = select.hopper(" has no WGMMA", function(p, arch_name, capability)
  if p.dtype == "f32" then return nil, "the gradients' products read fp32 across D, and WGMMA reads tf32 only along D" end
  local bytes = vector_bytes(p, p.weight_stride, p.element_bytes)
  if bytes ~= 16 then
    return nil, ("TMA wants addresses and row strides in multiples of 16 bytes; weight's are multiples of %d"):format(bytes or 1)
  end
  bytes = p.grad_weight and vector_bytes(p, p.grad_weight_stride, cxx.bytes[p.grad_weight]) or 16
  if bytes ~= 16 then
    return nil, ("TMA wants addresses and row strides in multiples of 16 bytes; grad_weight's are multiples of %d"):format(bytes or 1)
  end
  local strides = { p.hidden_stride * p.element_bytes, p.weight_stride * p.element_bytes, p.grad_weight and p.grad_weight_stride * cxx.bytes[p.grad_weight] }
  if math.max(table.unpack(strides)) >= select.most_map_stride then return nil, "TMA wants row strides below 2^40 bytes" end
  if p.grad_hidden and p.d * cxx.bytes.f32 % 16 ~= 0 then
    return nil, ("TMA wants row strides in multiples of 16 bytes; those of grad_hidden's fp32 sums are %d"):format(p.d * cxx.bytes.f32)
  end
  local few, many = tile_for(hopper_tiles, p.n), hopper_tiles[#hopper_tiles]
  local function tile(of, bv) return { bm = of.bm, bv = bv, cluster = of.cluster, stages = of.stages, arch = arch_name } end
  local gradients_tile
  if few == many and can_take_turns(p) then
    gradients_tile = { bm = 128, wg = 128, bv = linear_logp.stored_turn_columns, cluster = 1, stages = 4, arch = arch_name }
    gradients_tile.group = linear_logp.turn_group(p, gradients_tile)
  end
  local products_tile = few == many and stores_often(p) and turns_tile(arch_name)
  local function hidden_tile()
    if products_tile then return products_tile end
    if few == many and p.parts and p.n <= most_rows_of_few_tiles then
      local columns = columns_of_few_in_parts(p)
      return columns < 256 and turns_tile(arch_name, nil, columns == 192) or nil
    end
    if few == many then return (p.narrow or adds_across(p) or has_few_tiles(p) or has_fuller_waves(p)) and turns_tile(arch_name) or nil end
    return not p.grad_filter_eps and narrow_tile(p, few.bm, arch_name) or nil
  end
  local weight_tile = products_tile or few == many and (stores_soon(p) or adds_across(p)) and turns_tile(arch_name, weight_group, is_wide_across(p))
  return selected(p, capability, "hopper",
    specs(p, tile(few, 256), weight_tile or tile(many, 256), nil, true, gradients_tile, hidden_tile()))
end)

backward.portable = select.portable(function(p, arch_name, capability)
  local bytes = vector_bytes(p, p.weight_stride, p.element_bytes)
  if not bytes or bytes < math.min(p.element_bytes, 4) then
    return nil, ("addresses and row strides are multiples of %d bytes, elements have %d"):format(bytes or 1, p.element_bytes)
  end
  local few, many = tile_for(portable_tiles, p.n), portable_tiles[#portable_tiles]
  local function tile(of) return { bm = of.bm, bv = 128, cluster = 1, stages = of.stages, arch = arch_name } end
  return selected(p, capability, "portable", specs(p, tile(few), tile(many), bytes < 16 and bytes or nil))
end)

-- Rows of the plans that may take slabs of saved exponentials (takes_slabs). 256 rows may, too, and need no further kernels.
backward.rows_of_slabs = { 1024, 2048 }

-- Problems of a frozen head, which needs grad_hidden alone, with what bf16 plans choose by default: all exponentials, in chunks of rows, and from V 49152 on a
-- product in parts, whose number depends on V (choose_parts, runtime/operators/linear/linear_budget.c): at most 16 from D 768 on, up to V 262144.
-- path: "direct" or, behind a forward, "in_forward".
local most_parts = 16
function backward.frozen_heads(operator, d, path)
  local problems, forward = {}, path == "in_forward" and ":forward" or ""
  local function add(n, hints)
    problems[#problems + 1] = ("%s:bf16:n%d:d%d:v131072:gh_bf16%s:saved_exp:%s%s"):format(operator, n, d, forward, path, hints)
  end
  for _, hints in ipairs { "", ":narrow", ":parts2", ":parts2:narrow" } do add(4096, hints) end
  for _, n in ipairs { 256, 1024 } do
    for parts = 2, most_parts do add(n, ":parts" .. parts) end
  end
  return problems
end

-- The outputs of a training step, with one option at a time; the last accumulates a main gradient in fp32.
function backward.training_options(dtype)
  local own = (":gh_%s:gw_%s"):format(dtype, dtype)
  if dtype == "f32" then return { own } end
  return { own, ":softcap30" .. own, (":bias_%s%s:gb_%s"):format(dtype, own, dtype), ":dv" .. own, (":gh_%s:gw_f32:acc_weight"):format(dtype) }
end

-- Problems whose kernels a prebuild compiles: training. hidden_sizes: nil for the common ones.
function backward.prebuilt(dtype, hidden_sizes)
  local problems = {}
  for _, d in ipairs(hidden_sizes or select.common_hidden_sizes) do
    local problem = ("linear_logp_backward:%s:n4096:d%d:v131072"):format(dtype, d)
    for _, option in ipairs(backward.training_options(dtype)) do
      problems[#problems + 1] = problem .. option
      problems[#problems + 1] = problem .. option .. ":direct" -- all of a small vocabulary at once
    end
    problems[#problems + 1] = ("%s:gh_%s:gw_%s:g_entropy"):format(problem, dtype, dtype)
    problems[#problems + 1] = ("linear_logp_backward:%s:n%d:d%d:v131072:gh_%s:gw_%s"):format(dtype, most_rows_of_short_sums, d, dtype, dtype)
    for _, frozen in ipairs(dtype == "bf16" and backward.frozen_heads("linear_logp_backward", d, "in_forward") or {}) do problems[#problems + 1] = frozen end
  end
  return problems
end

return backward
