-- What the kernels of logits_logp share: templates, Config, and the sizes that decide a row's bits.
local arch = require "gen.arch"
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local tile_config = require "gen.kernels.tile_config"

local config = {}

-- A warp holds a segment: 8 vectors of 16 bytes a lane. The manifest says its columns as block_columns.
local segment_vectors = 8
config.segment_bytes = 32 * segment_vectors * 16
-- Segments whose sums a block holds of a row: FLP_LOGITS_SHARED_SEGMENTS, which templates/parts/logits_shared.cuh compares.
local shared_segments = 512

local head = {
  "types", "params/logits_logp", "simt", "tally", "convert", "streaming", "vector", { only = "shifts_vectors", "shifted_vectors" }, "largest",
  "target_share", "logit_bounds", { only = "softcap", "magnitudes" }, { only = "softcap", "local_memory" },
  { only = "softcap", "softcap" }, "logits_row", "logits_segment", { only = "softcap", "segment_beyond_softcap" }, "logits_merge",
}

local function columns(spec, vectors) return 32 * vectors * 16 // cxx.bytes[spec.dtype] end

function config.segment_columns(spec) return columns(spec, segment_vectors) end

-- Where rows fill half a segment at most, a warp holds no more: what is left out counts as nothing in the sums, so that they have the same bits.
function config.half_columns(spec) return columns(spec, segment_vectors // 2) end

local function held_vectors(spec) return spec.half and segment_vectors // 2 or segment_vectors end

-- Of a segment in one lane.
function config.lane_bytes(spec) return 16 * held_vectors(spec) end

-- Shared memory of so many rows at a time: sums of float2, float2 for the argmax, one float for the entropy.
function config.shared_bytes(spec, rows)
  local bytes = rows * (shared_segments * 8 + (spec.argmax and shared_segments or 1) * 8 + (spec.entropy and shared_segments or 1) * 4)
  return (bytes + 15) // 16 * 16
end

-- Kernels that may write gradients over the logits.
local rewrites = { logits_logp_gradient = true, logits_logp_fused = true, logits_logp_fused_cluster = true }

function config.entries(spec)
  return {
    { "using", "element", cxx.types[spec.dtype] }, { "int", "segment_vectors", held_vectors(spec) },
    { "int", "cluster", spec.cluster or 1 }, { "int", "vector_bytes", spec.vec or 16 },
    { "bool", "has_softcap", spec.softcap or false }, { "bool", "has_entropy", spec.entropy or false },
    { "bool", "wants_argmax", spec.argmax or false }, { "bool", "rewrites", rewrites[spec.operator] or false },
    { "bool", "holds_row", spec.half or false }, { "bool", "is_staged", config.is_staged(spec) },
  }
end

-- Whether rows come to a kernel's warps through shared memory, where there is a copy engine: those that a cluster holds until their gradients are written; and
-- many rows to the forward's warps, of 16-bit logits those at any address (8192 x 50257: 0.93 of a read's speed in place of 0.84), and those whose entropy is
-- asked for (4096 x 131072: 0.92 in place of 0.86). Others are as fast without, or faster, and fp32 at any address, which would be 1 to 3 % faster, would
-- spill.
function config.is_staged(spec)
  if spec.operator == "logits_logp_fused_cluster" then return true end
  if spec.operator ~= "logits_logp" or cxx.bytes[spec.dtype] ~= 2 or spec.half or not arch.find(spec.arch).clusters then return false end
  return spec.vec ~= nil or spec.entropy == true
end

-- Bytes of a segment's place there, which may begin anywhere in a line of 128 bytes.
config.slot_bytes = config.segment_bytes + 128

-- Other rows may lie at any address: aligned vectors are read and written, and shifted in between.
function config.is_shifted(spec) return spec.vec and not config.is_staged(spec) end

-- A segment takes 32 registers of a thread, half of one 16; what is done with each logit wants more. Blocks of four warps are five with 96, as many as their
-- shared memory allows; of wider ones two have room for 128.
local function registers_for(spec, lean)
  if config.is_shifted(spec) and spec.entropy and (rewrites[spec.operator] or not spec.softcap) then return 168 end
  if spec.softcap and spec.entropy and spec.operator == "logits_logp_fused" then return 168 end -- with 128 ptxas spills two
  if spec.softcap and spec.w == 4 then return 96 end
  if spec.softcap or spec.argmax and config.is_shifted(spec) or spec.entropy and not config.is_staged(spec) then return 128 end
  if spec.entropy or spec.argmax and cxx.bytes[spec.dtype] == 4 then return spec.w == 4 and 96 or 128 end
  return lean
end

-- lean: registers without options, where it is said.
function config.launch(spec, shared_bytes, lean)
  local threads = spec.w * 32
  local registers = registers_for(spec, lean or (spec.vec and 96 or 80) - (spec.half and 16 or 0))
  return {
    threads = threads, registers = registers, shared_bytes = shared_bytes, block_columns = columns(spec, held_vectors(spec)),
    blocks_per_multiprocessor = math.max(1, 65536 // ((registers + 1) // 8 * 8 * threads)),
  }
end

-- Three blocks of 8 warps a multiprocessor keep memory busy; many registers leave three of 4, those of rows at any address and of a softcap five, as the argmax
-- of fp32 (0.957 of a read in place of 0.945).
function config.block_warps(spec)
  local lean = not spec.vec and not config.is_staged(spec) and not (spec.argmax and spec.dtype == "f32")
  local is_wide = not spec.softcap or spec.operator == "logits_logp_cluster" -- a warp for each segment of a row
  return lean and is_wide and registers_for(spec, 80) <= 128 and 8 or 4
end

-- How many blocks each of few rows has: a warp has one segment of 262144 logits of 16 bits. Devices need not form clusters of more than 8; with 8
-- the row takes 0.8 us more.
config.row_cluster = 16

-- Rules of all; true, or nil and the reason.
function config.check(spec)
  local bytes = cxx.bytes[spec.dtype]
  if spec.vec and spec.vec ~= bytes then return nil, ("vec = %d: wanted %d, the bytes of an element (16 is not written)"):format(spec.vec, bytes) end
  if spec.w and spec.w > 32 then return nil, ("w = %d: warps of a block, at most 32"):format(spec.w) end
  return true
end

-- Those of kernels that write gradients.
function config.check_gradient(spec)
  if spec.argmax then return nil, "argmax: a gradient has none" end
  return config.check(spec)
end

-- What decides a row's bits: the segments. Neither the loads' width nor the block's size does.
function config.numerics(name, spec)
  return ("%s.%s.%s.x%d"):format(name, spec.softcap and "r6" or "r4", spec.dtype, config.segment_columns(spec))
end

-- The sums of so many rows, as a banner tells of them.
function config.about_sums(spec, rows)
  return { config.shared_bytes(spec, rows), ("sums: of %d segments of %d row%s each, offset and sum, moment and best"):format(
    shared_segments, rows, rows > 1 and "s" or "") }
end

-- What a banner says of every kernel on rows of logits. more: what else is computed; threads: roles; shared: the rest of what lies there.
function config.about(spec, n, computes, grid, threads, ...)
  local shared = { ... }
  local taken = 0
  for _, part in ipairs(shared) do taken = taken + part[1] end
  shared[#shared + 1] = { n.shared_bytes - taken, "barriers, and what fills up to a multiple of 16" }
  local logits = spec.dtype .. (spec.softcap and ", softcapped" or "")
  return { computes = ("%s; logits [N, V] %s, a warp holds %d at a time"):format(computes, logits, n.block_columns),
           grid = grid, threads = threads, shared = shared }
end

-- A kernel's module: own, its templates behind those of all; kernel: what it has of its own. numerics: the name that its bits go by.
function config.kernel(numerics, own, kernel)
  kernel.templates, kernel.parameters = tile_config.join(head, own), { { "LogitsLogpParams", "params" } }
  kernel.config = kernel.config or config.entries
  local check = kernel.check or config.check
  function kernel.check(spec, device)
    local legal, reason = check(spec, device)
    if not legal then return nil, reason end
    return budget.check_shared(spec, kernel.derive(spec), device)
  end
  function kernel.numerics(spec) return config.numerics(numerics, spec) end
  return kernel
end

config.results = "logp[row] = z[target] - log(sum_v exp(z[v])), lse, entropy and argmax where asked"
config.gradients = "grad_logits[row, v] = g_logp ([v = target] - p[v]) and what g_lse and g_entropy add"

return config
