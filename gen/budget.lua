-- Derives a kernel's threads, registers, shared memory and TMA boxes, once: the kernel asserts these numbers, and C reads them from the manifest.
local cxx = require "gen.cxx"

local budget = {}

local function align(bytes, to) return (bytes + to - 1) // to * to end

-- Adds a part to the kernel's shared memory. n.shared: a list of { bytes, what }, in the struct's order.
local function take_shared(n, bytes, what)
  n.shared = n.shared or {}
  n.shared[#n.shared + 1] = { bytes, what }
  n.shared_bytes = (n.shared_bytes or 0) + bytes
end

local function align_shared(n, to) take_shared(n, align(n.shared_bytes, to) - n.shared_bytes, ("unused, up to a multiple of %d"):format(to)) end

-- A kernel that is bound by memory bandwidth: 64 registers a thread, and as many blocks on a multiprocessor as its registers allow.
function budget.of_threads(threads, shared_bytes)
  return { threads = threads, shared_bytes = shared_bytes, registers = 64, blocks_per_multiprocessor = 65536 // (64 * threads) }
end

-- The tile kernels on Hopper. A stage holds 128 bytes, one swizzle row, of each row of A and column of B, and has two mbarriers. Shared memory is aligned to
-- the swizzle's 1024 bytes. fp32 (3xTF32) adds a warpgroup that splits each number in two tf32 parts, shared memory for the second part of B's numbers, and a
-- third mbarrier a stage.
function budget.hopper(spec)
  local n = { element_bytes = cxx.bytes[spec.dtype] }
  local f32 = spec.dtype == "f32"
  n.block_inner = 128 // n.element_bytes
  -- wg: the rows of a consumer warpgroup; 64 if the field is left out. If one warpgroup has all rows of a tile (bm = wg), there are two, which take turns with
  -- a tile each: the ping-pong schedule. Otherwise they share the rows of one tile: the cooperative schedule.
  n.group_rows = spec.wg or 64
  n.turns = spec.wg and spec.bm == spec.wg and 2 or 1
  n.consumer_groups = spec.bm // n.group_rows * n.turns
  n.threads = (n.consumer_groups + (f32 and 2 or 1)) * 128
  n.wgmma_k = 32 // n.element_bytes
  n.a_box_rows = spec.a_transposed and n.block_inner or spec.bm
  if spec.dv or spec.b_transposed then
    n.b_box_columns, n.b_box_rows = 128 // n.element_bytes, n.block_inner
    -- The blocks of a cluster load equal shares: three boxes of 64 columns become six boxes of half the inner size.
    if spec.bv // n.b_box_columns % spec.cluster > 0 then n.b_box_rows = n.block_inner // spec.cluster end
  else
    -- A box has at most 256 rows; with multicast each block of the cluster loads its share of the tile.
    n.b_box_columns, n.b_box_rows = n.block_inner, math.min(spec.bv // spec.cluster, 256)
  end
  -- With few rows the kernel is bound by memory bandwidth. It is 5 % faster if the two 128-byte halves of a 256-byte line of the weight are requested together,
  -- and another 2 % faster with an even number of stages. With many rows it is better to fill each stage as soon as it is free.
  n.steps_together = n.consumer_groups == 1 and not f32 and 2 or 1
  local a, b = spec.stages * spec.bm * 128, spec.stages * spec.bv * 128
  take_shared(n, a, ("stages.a: %d stages of A, %d rows x %d of the inner size"):format(spec.stages, spec.bm, n.block_inner))
  take_shared(n, b, ("stages.b: %d stages of B, %d columns x %d of the inner size"):format(spec.stages, spec.bv, n.block_inner))
  if f32 then take_shared(n, b + 8 * spec.stages + 16, "stages.low: what is left of B's numbers behind their tf32 parts, a barrier a stage, two of turns") end
  take_shared(n, 16 * spec.stages, "stages.full, stages.empty: two barriers a stage")
  if n.turns > 1 then take_shared(n, (8 + 32) * n.turns, "stages.turns: a barrier for each warpgroup, for each warp the other's tiles and its turn") end
  align_shared(n, 1024)
  -- A register cap at entry lets setmaxnreg move registers from the other warpgroups to the consumers. With one consumer warpgroup there are enough for all,
  -- except with fp32: its consumers hold a stage's sums and A's tf32 parts beside the accumulators.
  if f32 then
    n.producer_registers, n.splitter_registers = 24, 24
    if n.consumer_groups == 1 then n.registers, n.consumer_registers = 168, 240 else n.registers, n.consumer_registers = 128, 232 end
  elseif n.consumer_groups == 1 then
    n.registers, n.producer_registers, n.splitter_registers, n.consumer_registers = 255, 0, 0, 0
  elseif spec.wg then
    n.registers, n.producer_registers, n.splitter_registers, n.consumer_registers = 168, 24, 0, 240
  elseif spec.bias then -- the consumers load it, for which the producer gives up registers
    n.registers, n.producer_registers, n.splitter_registers, n.consumer_registers = 168, 56, 0, 224
  else
    n.registers, n.producer_registers, n.splitter_registers, n.consumer_registers = 168, 72, 0, 216
  end
  n.blocks_per_multiprocessor = 1
  return n
end

-- For a kernel that stores its tiles by TMA: two buffers of 16 rows of 128 bytes for each consumer warp (tile_store.cuh).
function budget.with_tile_store(n)
  take_shared(n, n.consumer_groups * 4 * 2 * 2048, "out: two boxes of 16 rows of 128 bytes for each consumer warp, which the copy engine writes")
  return n
end

-- In the ping-pong schedule, shared memory keeps the statistics of a warpgroup's rows while it multiplies (statistics_kernel.cuh): a few words for each of a
-- thread's two rows, and that for each 64 rows of the warpgroup.
function budget.with_kept_statistics(n, spec)
  if n.turns == 1 then return n end
  local words = 3 + (spec.entropy and 1 or 0) + (spec.logit_sum and 1 or 0) + (spec.argmax and 2 or 0)
  take_shared(n, n.consumer_groups * 128 * 2 * words * 4 * n.group_rows // 64, "kept: statistics of the rows of a warpgroup while it multiplies")
  if spec.operator == "linear_logp_save_exp" then n.producer_registers, n.consumer_registers = 40, 232 end -- with 240 ptxas spills one register
  return n
end

-- Whether the dynamic tile scheduler ("tickets", tickets.cuh) hands out the units of one tile. A block then needs a walk of its own (no clusters), on whose
-- units all of its warpgroups work (no ping-pong schedule). fp32 kernels do without: they are bound by arithmetic, and their producer and splitter have no
-- registers for it.
function budget.takes_tickets(spec)
  return spec.operator == "linear_logp" and spec.dtype ~= "f32" and spec.cluster == 1 and not (spec.wg and spec.bm == spec.wg)
end

function budget.with_tickets(n, spec)
  if not budget.takes_tickets(spec) then return n end
  take_shared(n, 40, "tickets: which unit is next and the one behind it, and their barriers")
  align_shared(n, 1024)
  return n
end

-- The targets of two tiles (target_lookahead.cuh). They take less than the struct's alignment of 1024 bytes, so they add that much.
function budget.with_target_lookahead(n)
  take_shared(n, 1024, "the targets in this tile and the next, and their barriers")
  return n
end

-- The barriers with which warpgroups that take turns add one part's sums after the other's (product_slabs.cuh): they, too, add the struct's alignment.
function budget.with_sums_in_order(n)
  if n.turns > 1 then take_shared(n, 1024, "the barriers by which a part's sums follow the other warpgroup's") end
  return n
end

-- The portable tile kernels: a stage holds 64 bytes of each row of A and column of B, and each warp computes 32 x 64 of the tile.
local function portable_tile(spec)
  local n = { element_bytes = cxx.bytes[spec.dtype], warp_rows = 32, warp_columns = 64 }
  n.block_inner = 64 // n.element_bytes
  n.warps_down, n.warps_across = spec.bm // n.warp_rows, spec.bv // n.warp_columns
  n.threads = n.warps_down * n.warps_across * 32
  take_shared(n, spec.stages * (spec.bm + spec.bv) * 64,
    ("stages: %d of A, %d rows x %d of the inner size, and B, %d columns"):format(spec.stages, spec.bm, n.block_inner, spec.bv))
  return n
end

-- Registers a thread. With 128, two blocks of 256 threads fit on a multiprocessor and hide each other's latency. A kernel that needs more (lean is false) gets
-- 255, with which one block fits.
local function share_registers(n, lean)
  n.registers = lean and 128 or 255
  n.blocks_per_multiprocessor = math.max(1, 65536 // ((n.registers + 1) // 8 * 8 * n.threads))
  return n
end

-- Bytes of the statistics of a row that each warp leaves, to be merged with those of the other warps that have a part of the row: offset, sum, largest logit
-- and its index, and the optional ones.
local function merged_bytes(spec) return 16 + (spec.entropy and 4 or 0) + (spec.logit_sum and 4 or 0) end

function budget.portable(spec)
  local n = portable_tile(spec)
  take_shared(n, n.warps_across * spec.bm * merged_bytes(spec), "merge: the statistics that the warps of a row merge")
  align_shared(n, 128)
  return share_registers(n, spec.dtype ~= "f32" and not (spec.vec or spec.bias or spec.softcap or spec.argmax or spec.entropy or spec.logit_sum))
end

-- A portable kernel that stores its tiles. Copies of two bytes take more registers, because cp.async copies at least four bytes and they go through registers.
function budget.portable_product(spec)
  return share_registers(portable_tile(spec), spec.dtype ~= "f32" and spec.vec ~= 2 and not (spec.softcap and spec.entropy))
end

-- true if a block has the shared memory that the kernel takes; else nil and the reason, which names the stages or, for a kernel without stages, the warps.
function budget.check_shared(spec, n, arch)
  if n.shared_bytes <= arch.shared_bytes then return true end
  local takes = spec.stages and ("p = %d"):format(spec.stages) or ("w = %d"):format(spec.w)
  return nil, ("%s: %d bytes of shared memory, a block has %d"):format(takes, n.shared_bytes, arch.shared_bytes)
end

-- Blocks that a multiprocessor holds at once. The system takes 1 KiB of shared memory for each block, and a multiprocessor has 1 KiB more than the opt-in limit
-- of one block.
function budget.resident_blocks(n, arch)
  return math.max(1, math.min(n.blocks_per_multiprocessor, (arch.shared_bytes + 1024) // (n.shared_bytes + 1024)))
end

return budget
