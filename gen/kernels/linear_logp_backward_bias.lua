-- grad_bias of a chunk of the vocabulary: column sums.
local cxx = require "gen.cxx"

local kernel = {}

kernel.templates = { "types", "params/linear_logp_backward", "simt", "convert", "dependent_launch", "linear_logp_backward_bias" }
kernel.entry = "linear_logp_backward_bias"
kernel.parameters = { { "BackwardBiasParams", "params" } }

function kernel.derive()
  local threads = 256
  return { threads = threads, shared_bytes = threads * 4, registers = 64, blocks_per_multiprocessor = 65536 // (64 * threads) }
end

kernel.dependent_launch = true

function kernel.check() return true end

function kernel.config(spec)
  return { { "using", "element", cxx.types[spec.dtype] }, { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false } }
end

function kernel.numerics() return "linear_logp_backward_bias.r1" end

function kernel.about(spec, n)
  return {
    computes = ("grad_bias[v] %s= the sum over the rows of their derivatives by the logits, and by those of the targets"):format(spec.adds and "+" or ""),
    grid = "a block for each 32 columns", threads = "each warp every 8th row of these columns; then the warps' sums in their order",
    shared = { { n.shared_bytes, "part: the warps' sums" } },
  }
end

return kernel
