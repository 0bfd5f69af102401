-- linear_logp_backward: from a problem and a device to variants. Kernels: of one with the forward, linear_logp's two; valid rows, gather; where not all
-- derivatives come from saved exponentials, logit gradients; where grad_hidden is wanted its product and its finish; where grad_weight is wanted its product
-- and the order of its targets; where grad_bias is wanted its sums; with a filter, on sm_90a, what it kept.
local cxx = require "gen.cxx"
local linear_logp = require "gen.select.linear_logp"
local select = require "gen.select"
local tile_config = require "gen.kernels.tile_config"

local backward = {}

local tile_for, hopper_tiles, portable_tiles = linear_logp.tile_for, linear_logp.hopper_tiles, linear_logp.portable_tiles

-- The largest copy that addresses and a row of so many elements allow.
local function vector_bytes(p, stride, bytes) return select.vector_bytes(p.pointer_alignment, { stride * bytes }, 2) end

local function on(tile, spec)
  spec.bm, spec.wg, spec.bv, spec.cluster, spec.stages, spec.arch, spec.group = tile.bm, tile.wg, tile.bv, tile.cluster, tile.stages, tile.arch, tile.group
  return spec
end

-- Rows of so many elements end within 16 bytes, of which the copy engine would write all.
local function is_ragged(columns, dtype) return columns * cxx.bytes[dtype] % 16 ~= 0 or nil end

-- What packs the valid rows.
local function packing(p, arch_name)
  return {
    { role = "valid_rows", operator = "linear_logp_backward_rows", dtype = p.dtype == "f16" and "f16" or nil, arch = arch_name },
    { role = "gather", operator = "linear_logp_backward_gather", dtype = p.dtype, arch = arch_name },
  }
end

-- tile: of the kernels that have N rows; gradients_tile: of grad_logits among them, nil for tile; hidden_tile: of grad_hidden's product, the same; wide: of
-- those that have V rows, `free` where its clusters do not keep in step; narrow: of products of few rows at a time; weight_vec: nil for 16 bytes; bulk: true
-- on sm_90a.
local function specs(p, tile, wide, narrow, weight_vec, bulk, gradients_tile, hidden_tile)
  local dtype, exact, arch_name = p.dtype, p.exact, tile.arch
  local filter = bulk and p.grad_filter_eps or nil
  local list = packing(p, arch_name)
  local function add(spec) list[#list + 1] = spec end
  if not (p.saved_exp and (p.all_saved or p.direct or p.in_forward)) then
    add(on(gradients_tile or tile, { role = "grad_logits", operator = "linear_logp_grad_logits", dtype = dtype, d = p.d, dv = p.dv, bias = p.bias_dtype,
                   softcap = p.softcap, entropy = p.g_entropy, logit_sum = p.logit_sum, classes = p.logit_sum and p.class_weights,
                   vec = weight_vec, exact = exact, filter = filter }))
  end
  if p.grad_hidden then
    local direct = p.direct -- of one product of the whole vocabulary, which leaves valid rows close together; else of sums
    add(on(p.narrow and narrow or hidden_tile or tile, { role = "hidden_product", operator = "matrix_product", dtype = dtype, b_transposed = not p.dv or nil,
                   out = direct and p.grad_hidden or "f32", adds = not (direct or p.in_forward) or nil,
                   ragged = bulk and direct and is_ragged(p.d, p.grad_hidden), vec = weight_vec, exact = exact, filter = filter,
                   in_step = bulk and p.hidden_first, targets = direct and "of_rows" }))
    add { role = "hidden_finish", operator = "linear_logp_backward_finish", dtype = direct and p.grad_hidden, weight = not direct and dtype,
          dv = not direct and p.dv, out = p.grad_hidden, adds = p.acc_hidden, arch = arch_name }
  end
  if p.grad_weight then
    add(on(wide, { role = "weight_product", operator = "matrix_product", dtype = dtype, a_transposed = true, b_transposed = true, out = p.grad_weight,
                   adds = p.acc_weight, ragged = bulk and is_ragged(p.dv and p.v or p.d, p.grad_weight), exact = exact, filter = filter,
                   in_step = bulk and p.hidden_first and not wide.free or nil, targets = p.dv and "in_columns" or "in_rows" }))
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

-- linear_logp's kernels for the valid rows, packed, whose rows are 16-byte aligned. path: "hopper" or "portable"; changes: to p.
function backward.packed_forward(p, capability, path, changes)
  local vector = 16 // p.element_bytes
  changes.packed, changes.hidden_stride = true, (p.d + vector - 1) // vector * vector
  return linear_logp[path](setmetatable(changes, { __index = p }), capability)
end

-- The kernels of a forward whose rows are brought together for itself alone.
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

-- Two warpgroups that take turns, as the forward's: where at most one option takes registers, of which a filter is one. An element's bits are the same in
-- any tile.
local function can_take_turns(p)
  local options = (p.grad_filter_eps and 1 or 0) + (p.bias_dtype and 1 or 0) + (p.softcap and 1 or 0) + (p.g_entropy and 1 or 0)
    + (p.logit_sum and (p.class_weights and 2 or 1) or 0)
  return options <= 1
end

-- A main gradient in fp32 is read and written once for each chunk of rows, whose sums are short: with tiles of 128 x 128 in turn that lies under the other
-- warpgroup's products. Sustained 7 % of a step (18 % at D = 3072, where rounds of smaller tiles are fuller, too), in burst 1 % less, as each tile reads more
-- of the L2; of sums of 8,000 and more, which are stored once, the two weigh the same: bench/results/NOTES.md.
local function stores_often(p) return p.acc_weight and p.grad_weight == "f32" and not p.grad_filter_eps end

-- Sums over few rows are short, too, and storing a tile of grad_weight is then a tenth of computing it. Sustained 2 to 3 % of a step at 1024 and 2048 rows,
-- in burst 0.7 % less. At 4096 it is 1 to 2 % and 2 % less, so that there is nothing to choose: bench/results/NOTES.md.
local most_rows_of_short_sums = 2048
local function stores_soon(p) return p.n <= most_rows_of_short_sums and not (p.grad_filter_eps or p.hidden_first) end

-- Targets in the columns of a [D, V] grad_weight are added one after the other: 15 % of a tile of 8192 rows, which in turns is hidden by the other warpgroup's
-- products. Sustained 2 to 8 % of a step, in burst between 2 % more and 2.5 % less. grad_hidden's product in turns, too, brings another 1.4 to 4 % sustained,
-- and in burst from 2.5 % less, where all exponentials are saved, to 2 % more: bench/results/NOTES.md.
local function adds_across(p) return p.dv and not p.grad_filter_eps end

-- Of the whole vocabulary at once, which many columns divide well, tiles of 192 read less of the L2 for a flop: 2 to 3 % of a step in burst, on an H100 5 % and
-- more sustained. Kept in step they would gain 1.5 % less in burst: who waits for others has nothing to multiply. bench/results/NOTES.md.
local function is_wide_across(p)
  return adds_across(p) and p.direct and p.grad_weight
    and tile_config.has_registers_for_wide_columns { cluster = 2, out = p.grad_weight, ragged = is_ragged(p.v, p.grad_weight) }
end

-- grad_hidden has one tile for each 128 rows and 256 columns, fewer than there are multiprocessors where rows are few, although its sums are as long as the
-- vocabulary. Smaller tiles keep more of them busy, for the same bits: at D 2048 and 4096 a step takes 4 to 40 % less time with 256 and 512 rows, 17 and 24 %
-- less with 64 and 128. At 1536 rows and more the difference is within 2 %: bench/results/NOTES.md.
local most_rows_of_few_tiles = 1024
local narrow_few = { bm = 64, bv = 128, stages = 8 } -- one warpgroup, up to 128 rows
local function has_few_tiles(p) return p.n <= most_rows_of_few_tiles and not p.grad_filter_eps end

local weight_group = 16 -- row blocks of grad_weight that go together, in turns

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
  local hidden_tile = products_tile or few == many and (adds_across(p) or has_few_tiles(p)) and turns_tile(arch_name)
    or few ~= many and has_few_tiles(p) and { bm = narrow_few.bm, bv = narrow_few.bv, cluster = few.bm // narrow_few.bm, stages = narrow_few.stages,
                                              arch = arch_name } or nil
  local weight_tile = products_tile or few == many and (stores_soon(p) or adds_across(p)) and turns_tile(arch_name, weight_group, is_wide_across(p))
  return selected(p, capability, "hopper",
    specs(p, tile(few, 256), weight_tile or tile(many, 256), tile(few, 128), nil, true, gradients_tile, hidden_tile))
end)

backward.portable = select.portable(function(p, arch_name, capability)
  local bytes = vector_bytes(p, p.weight_stride, p.element_bytes)
  if not bytes or bytes < math.min(p.element_bytes, 4) then
    return nil, ("addresses and row strides are multiples of %d bytes, elements have %d"):format(bytes or 1, p.element_bytes)
  end
  local few, many = tile_for(portable_tiles, p.n), portable_tiles[#portable_tiles]
  local function tile(of) return { bm = of.bm, bv = 128, cluster = 1, stages = of.stages, arch = arch_name } end
  return selected(p, capability, "portable", specs(p, tile(few), tile(many), tile(few), bytes < 16 and bytes or nil))
end)

-- What a training step asks for, one option at a time; the last adds to a main gradient in fp32.
function backward.training_options(dtype)
  local own = (":gh_%s:gw_%s"):format(dtype, dtype)
  if dtype == "f32" then return { own } end
  return { own, ":softcap30" .. own, (":bias_%s%s:gb_%s"):format(dtype, own, dtype), ":dv" .. own, (":gh_%s:gw_f32:acc_weight"):format(dtype) }
end

-- Problems whose kernels a prebuild makes: those of training. hidden_sizes: nil for the common ones.
function backward.prebuilt(dtype, hidden_sizes)
  local problems = {}
  for _, d in ipairs(hidden_sizes or select.common_hidden_sizes) do
    local problem = ("linear_logp_backward:%s:n4096:d%d:v131072"):format(dtype, d)
    for _, option in ipairs(backward.training_options(dtype)) do
      problems[#problems + 1] = problem .. option
      problems[#problems + 1] = problem .. option .. ":direct" -- of few entries
    end
    problems[#problems + 1] = ("%s:gh_%s:gw_%s:g_entropy"):format(problem, dtype, dtype)
    problems[#problems + 1] = ("linear_logp_backward:%s:n%d:d%d:v131072:gh_%s:gw_%s"):format(dtype, most_rows_of_short_sums, d, dtype, dtype)
  end
  return problems
end

return backward
