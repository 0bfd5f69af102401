-- weighted_sum's grad_w: the sums of one tile of rows.
local cxx = require "gen.cxx"
local weighted_sum = require "gen.kernels.weighted_sum"

local kernel = {}

kernel.templates = {
  "types", "params/weighted_sum", "simt", "convert", "streaming", "vector", "dependent_launch", "column_block", "weighted_sum_tile",
}
kernel.parameters = { { "WeightedSumTileParams", "params" } }

-- A multiprocessor has one block, with 64 KiB of x in flight: 8 loads a thread.
function kernel.derive(spec)
  local columns = 16 // cxx.bytes[spec.dtype]
  return {
    threads = 512, shared_bytes = columns * 256 * 4, registers = 128, blocks_per_multiprocessor = 1, block_inner = columns,
  }
end

kernel.check = weighted_sum.check_vector

function kernel.config(spec)
  return {
    { "using", "element", cxx.types[spec.dtype] }, { "using", "gradient_element", cxx.types[spec.g] },
    { "using", "weight_gradient_element", cxx.types[spec.gw] }, { "int", "unroll", 8 }, { "int", "vector_bytes", spec.vec or 16 },
  }
end

function kernel.numerics(spec) return ("weighted_sum_tile.r1.%s.g_%s.gw_%s"):format(spec.dtype, spec.g, spec.gw) end

function kernel.about(spec, n)
  return { computes = ("partial[tile, d] = sum of g[row] x[row, d] over a tile's rows, x [N, D] %s, g [N] %s; of one tile grad_w %s itself"):format(
             spec.dtype, spec.g, spec.gw),
           grid = "slabs of columns x tiles of rows", threads = "a vector's columns each, and every lanes-th row",
           shared = { { n.shared_bytes, "the lanes' sums" } } }
end

return kernel
