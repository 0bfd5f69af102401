-- What the kernels of logits_logp share: templates, Config, and the sizes that decide a row's bits.
local cxx = require "gen.cxx"

local config = {}

-- A warp holds a segment: 8 vectors of 16 bytes a lane, 4 KiB. KEEP IN STEP: logits segment (the manifest says its columns as block_vocab).
local segment_vectors = 8
-- Segments whose sums a block holds of a row.
local shared_segments = 512

local element_bytes = { bf16 = 2, f16 = 2, f32 = 4 }

config.head = { "types", "logits_logp_params", "simt", "dependent_launch", "convert", "streaming", "vector", "logits_row", "logits_segment", "logits_merge" }

function config.templates(own)
  local list = {}
  for _, name in ipairs(config.head) do list[#list + 1] = name end
  for _, name in ipairs(own) do list[#list + 1] = name end
  return list
end

function config.segment_columns(spec) return 32 * segment_vectors * 16 // element_bytes[spec.dtype] end

-- Of so many rows at a time: sums of float2, float2 for the argmax, one float for the entropy.
function config.shared_bytes(spec, rows)
  local bytes = rows * (shared_segments * 8 + (spec.argmax and shared_segments or 1) * 8 + (spec.entropy and shared_segments or 1) * 4)
  return (bytes + 15) // 16 * 16
end

-- Kernels that may write gradients over the logits.
local rewrites = { logits_logp_gradient = true, logits_logp_fused = true, logits_logp_fused_cluster = true }

function config.entries(spec)
  return {
    { "using", "element", cxx.types[spec.dtype] }, { "int", "segment_vectors", segment_vectors },
    { "int", "shared_segments", shared_segments }, { "int", "cluster", spec.cluster or 1 }, { "int", "vector_bytes", spec.vec or 16 },
    { "bool", "has_softcap", spec.softcap or false }, { "bool", "has_entropy", spec.entropy or false },
    { "bool", "wants_argmax", spec.argmax or false }, { "bool", "rewrites", rewrites[spec.operator] or false },
  }
end

-- A segment takes 32 registers of a thread; what is done with each logit wants more.
local function registers_for(spec, lean)
  if spec.softcap and spec.argmax then return 255 end
  if spec.softcap or spec.argmax or spec.vec and spec.entropy then return 168 end
  return spec.entropy and 128 or lean
end

-- lean: registers without options, 80 unless it is said.
function config.launch(spec, shared_bytes, lean)
  local threads, registers = spec.w * 32, registers_for(spec, lean or 80)
  return {
    threads = threads, registers = registers, shared_bytes = shared_bytes, block_vocab = config.segment_columns(spec),
    blocks_per_multiprocessor = math.max(1, 65536 // ((registers + 1) // 8 * 8 * threads)),
  }
end

-- Three blocks of 8 warps a multiprocessor keep memory busy; many registers leave three of 4.
function config.block_warps(spec) return registers_for(spec, 80) > 128 and 4 or 8 end

local vectors = { [2] = true, [4] = true, [8] = true }

-- Rules of all four; true, or nil and the reason.
function config.check(spec)
  if spec.vec and not vectors[spec.vec] then return nil, ("vec = %d: 2, 4 or 8 bytes (16 is not written)"):format(spec.vec) end
  if spec.vec == 2 and spec.dtype == "f32" then return nil, "vec = 2: f32 lies at multiples of 4 bytes" end
  if spec.w and spec.w > 32 then return nil, ("w = %d: warps of a block, at most 32"):format(spec.w) end
  return true
end

-- What decides a row's bits: the segments. Neither the loads' width nor the block's size does.
function config.numerics(name, spec)
  return ("%s.r1.%s.x%d"):format(name, spec.dtype, config.segment_columns(spec))
end

return config
