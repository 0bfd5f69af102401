-- weighted_sum's grad_x: the outer product of g and w.
local cxx = require "gen.cxx"
local weighted_sum = require "gen.kernels.weighted_sum"

local kernel = {}

kernel.templates = {
  "types", "params/weighted_sum", "simt", "convert", "streaming", "vector", "column_block", "weighted_sum_outer",
}
kernel.parameters = { { "WeightedSumOuterParams", "params" } }

-- Rows of a thread: two, and more where stores are narrow, so that a block still has enough to write.
local wide = { rows = 2, registers = 40, blocks = 6 }
local narrow = { rows = 8, registers = 64, blocks = 4 }

function kernel.derive(spec)
  local shape = (spec.vec or 16) >= 8 and wide or narrow
  return {
    threads = 256, shared_bytes = 0, registers = shape.registers, blocks_per_multiprocessor = shape.blocks, block_rows = shape.rows,
    block_inner = (spec.vec or 16) // cxx.bytes[spec.dtype],
  }
end

kernel.check = weighted_sum.check_vector

function kernel.config(spec, n)
  return {
    { "using", "element", cxx.types[spec.dtype] }, { "using", "weight_element", cxx.types[spec.weight] },
    { "using", "gradient_element", cxx.types[spec.g] }, { "int", "unroll", n.block_rows }, { "int", "vector_bytes", spec.vec or 16 },
  }
end

function kernel.numerics(spec) return ("weighted_sum_outer.r1.%s.w_%s.g_%s"):format(spec.dtype, spec.weight, spec.g) end

function kernel.about(spec)
  return { computes = ("grad_x[row, d] = g[row] w[d], grad_x [N, D] %s, g [N] %s, w [D] %s"):format(spec.dtype, spec.g, spec.weight),
           grid = "slabs of columns x groups of rows, short blocks in the order of memory", threads = "a vector of w each, times g into a few rows" }
end

return kernel
