-- What the kernels of logits_logp share: templates, Config, and the sizes that decide a row's bits.
local arch = require "gen.arch"
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local tile_config = require "gen.kernels.tile_config"

local config = {}

-- A segment is the part of a row that a warp holds: 8 vectors of 16 bytes a lane. The manifest has its number of columns as block_columns.
local segment_vectors = 8
config.segment_bytes = 32 * segment_vectors * 16
-- The segments of a row whose sums a block holds in shared memory: FLP_LOGITS_SHARED_SEGMENTS. templates/parts/logits_shared.cuh checks that they agree.
local shared_segments = 512

local head = {
  "types", "params/logits_logp", "simt", "tally", "convert", "streaming", "vector", { only = "shifts_vectors", "shifted_vectors" }, "largest",
  "target_share", "logit_bounds", { only = "softcap", "magnitudes" }, { only = "softcap", "local_memory" },
  { only = "softcap", "softcap" }, "logits_row", "logits_segment", { only = "softcap", "segment_beyond_softcap" }, "logits_merge",
}

local function columns(spec, vectors) return 32 * vectors * 16 // cxx.bytes[spec.dtype] end

function config.segment_columns(spec) return columns(spec, segment_vectors) end

-- If rows fill half a segment at most, a warp holds only that half. The other half would add nothing to the sums, so they have the same bits.
function config.half_columns(spec) return columns(spec, segment_vectors // 2) end

local function held_vectors(spec) return spec.half and segment_vectors // 2 or segment_vectors end

-- Bytes of a segment that one lane holds.
function config.lane_bytes(spec) return 16 * held_vectors(spec) end

-- Bytes of shared memory for the sums of so many rows: for each segment a float2, another for the argmax, and a float for the entropy.
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

-- Whether TMA brings a kernel's rows to its warps through shared memory, on GPUs that have it. The fused cluster kernel always does so, because it holds a row
-- there until the row's gradients are written. The forward's kernel does so with 16-bit logits for rows at any address (8192 x 50257: 0.93 of a read's speed
-- instead of 0.84) and with the entropy (4096 x 131072: 0.92 instead of 0.86). Other rows are as fast without it, or faster. fp32 rows at any address would be
-- 1 to 3 % faster, but the kernel would spill.
function config.is_staged(spec)
  if spec.operator == "logits_logp_fused_cluster" then return true end
  if spec.operator ~= "logits_logp" or cxx.bytes[spec.dtype] ~= 2 or spec.half or not arch.find(spec.arch).clusters then return false end
  return spec.vec ~= nil or spec.entropy == true
end

-- Bytes of a segment's slot in shared memory: the segment may begin anywhere in a line of 128 bytes.
config.slot_bytes = config.segment_bytes + 128

-- Whether rows at any address do not go through shared memory: aligned vectors are read and written, and shifted in registers in between.
function config.is_shifted(spec) return spec.vec and not config.is_staged(spec) end

-- Registers of a thread. A segment takes 32, half a segment 16, and the work on each logit takes more. With 96, five blocks of four warps fit on a
-- multiprocessor, as many as their shared memory allows. Of wider blocks two fit, which may have 128. lean: see config.launch.
local function registers_for(spec, lean)
  if config.is_shifted(spec) and spec.entropy and (rewrites[spec.operator] or not spec.softcap) then return 168 end
  if spec.softcap and spec.entropy and spec.operator == "logits_logp_fused" then return 168 end -- with 128 ptxas spills two
  if spec.softcap and spec.w == 4 then return 96 end
  if spec.softcap or spec.argmax and config.is_shifted(spec) or spec.entropy and not config.is_staged(spec) then return 128 end
  if spec.entropy or spec.argmax and cxx.bytes[spec.dtype] == 4 then return spec.w == 4 and 96 or 128 end
  return lean
end

-- What a kernel's derive returns. lean: the registers of a thread without options; nil: the usual number.
function config.launch(spec, shared_bytes, lean)
  local threads = spec.w * 32
  local registers = registers_for(spec, lean or (spec.vec and 96 or 80) - (spec.half and 16 or 0))
  return {
    threads = threads, registers = registers, shared_bytes = shared_bytes, block_columns = columns(spec, held_vectors(spec)),
    blocks_per_multiprocessor = math.max(1, 65536 // ((registers + 1) // 8 * 8 * threads)),
  }
end

-- Warps of a block. Three blocks of 8 warps on a multiprocessor keep the memory busy. Kernels with many registers have 4 warps, of which three blocks fit. So
-- have kernels for rows at any address, with a softcap, and for the argmax of fp32 (0.957 of a read's speed instead of 0.945): of these five blocks fit.
function config.block_warps(spec)
  local lean = not spec.vec and not config.is_staged(spec) and not (spec.argmax and spec.dtype == "f32")
  local is_wide = not spec.softcap or spec.operator == "logits_logp_cluster" -- a warp for each segment of a row
  return lean and is_wide and registers_for(spec, 80) <= 128 and 8 or 4
end

-- The blocks of the cluster that takes a row if there are few rows: with 16, each warp has one segment of a row of 262144 16-bit logits. Devices need not
-- support clusters of more than 8 blocks; with 8 the row takes 0.8 us more.
config.row_cluster = 16

-- The rules for all these kernels: true, or nil and the reason.
function config.check(spec)
  local bytes = cxx.bytes[spec.dtype]
  if spec.vec and spec.vec ~= bytes then return nil, ("vec = %d: wanted %d, the bytes of an element (16 is not written)"):format(spec.vec, bytes) end
  if spec.w and spec.w > 32 then return nil, ("w = %d: warps of a block, at most 32"):format(spec.w) end
  return true
end

-- The rules for kernels that write gradients.
function config.check_gradient(spec)
  if spec.argmax then return nil, "argmax: a gradient has none" end
  return config.check(spec)
end

-- What decides a row's bits: the segments. Neither the loads' width nor the block's size does.
function config.numerics(name, spec)
  local revision = spec.entropy and name == "logits_logp" and "r7" or spec.softcap and "r6" or "r4"
  return ("%s.%s.%s.x%d"):format(name, revision, spec.dtype, config.segment_columns(spec))
end

-- The part of shared memory with the sums of so many rows, for a banner.
function config.about_sums(spec, rows)
  return { config.shared_bytes(spec, rows), ("sums: of %d segments of %d row%s each, offset and sum, moment and best"):format(
    shared_segments, rows, rows > 1 and "s" or "") }
end

-- What a banner says of a kernel on rows of logits. computes, grid, threads: texts; then the parts of shared memory other than the barriers.
function config.about(spec, n, computes, grid, threads, ...)
  local shared = { ... }
  local taken = 0
  for _, part in ipairs(shared) do taken = taken + part[1] end
  shared[#shared + 1] = { n.shared_bytes - taken, "barriers, and what fills up to a multiple of 16" }
  local logits = spec.dtype .. (spec.softcap and ", softcapped" or "")
  return { computes = ("%s; logits [N, V] %s, a warp holds %d at a time"):format(computes, logits, n.block_columns),
           grid = grid, threads = threads, shared = shared }
end

-- Completes a kernel's module. numerics: the name with which its numeric identity begins; own: its templates, which follow those of all; kernel: the functions
-- of its own.
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
