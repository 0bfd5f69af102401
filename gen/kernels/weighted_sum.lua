-- weighted_sum on any GPU: teams of threads, w in the L1 cache.
local cxx = require "gen.cxx"

local kernel = {}

kernel.templates = { "types", "params/weighted_sum", "simt", "convert", "streaming", "vector", "weighted_sum" }
kernel.parameters = { { "WeightedSumParams", "params" } }

-- unroll: the vectors that a thread loads at once. With these numbers a multiprocessor has loads of 40 to 64 KiB in flight; more is no faster on an H200.
-- Vectors of 16-bit elements need more registers where w is fp32 or the loads are narrow.
local lean = { unroll = 4, registers = 64, blocks = 4 }
local needy = { unroll = 5, registers = 128, blocks = 2 }

local function shape_of(spec)
  return spec.dtype ~= "f32" and (spec.weight == "f32" or spec.vec) and needy or lean
end

kernel.threads = 256

function kernel.derive(spec)
  local shape = shape_of(spec)
  return {
    threads = kernel.threads, shared_bytes = 2 * (kernel.threads // 32) * 4, registers = shape.registers,
    blocks_per_multiprocessor = shape.blocks, block_rows = kernel.threads // spec.team,
  }
end

local vectors = { [2] = true, [4] = true, [8] = true }

-- vec: bytes of a load; 16 if it is left out.
function kernel.check_vector(spec)
  if spec.vec and not vectors[spec.vec] then return nil, ("vec = %d: 2, 4 or 8 bytes (16 is not written)"):format(spec.vec) end
  if spec.vec and spec.vec < cxx.bytes[spec.dtype] then
    return nil, ("vec = %d: an element of %s has %d bytes"):format(spec.vec, spec.dtype, cxx.bytes[spec.dtype])
  end
  return true
end

function kernel.check(spec)
  if spec.team & (spec.team - 1) ~= 0 or spec.team > kernel.threads then
    return nil, ("t = %d: a power of two up to %d"):format(spec.team, kernel.threads)
  end
  return kernel.check_vector(spec)
end

function kernel.config(spec)
  return {
    { "using", "element", cxx.types[spec.dtype] }, { "using", "weight_element", cxx.types[spec.weight] },
    { "using", "output_element", cxx.types[spec.y] }, { "int", "team", spec.team }, { "int", "unroll", shape_of(spec).unroll },
    { "int", "vector_bytes", spec.vec or 16 },
  }
end

function kernel.numerics(spec) return ("weighted_sum.r1.%s.w_%s.y_%s.t%d"):format(spec.dtype, spec.weight, spec.y, spec.team) end

function kernel.about(spec, n)
  return {
    computes = ("y[row] %s = sum_d x[row, d] w[d], x [N, D] %s, w [D] %s"):format(spec.y, spec.dtype, spec.weight), grid = "persistent: rows in turn",
    threads = ("teams of %d take a row each"):format(spec.team), shared = { { n.shared_bytes, "a sum of each warp, of two rows in turn" } },
  }
end

return kernel
