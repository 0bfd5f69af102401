-- grad_bias of a chunk of the vocabulary: column sums.
local budget = require "gen.budget"
local cxx = require "gen.cxx"

local kernel = { dependent_launch = true }

kernel.templates = { "types", "params/linear_logp_backward", "simt", "convert", "dependent_launch", "linear_logp_backward_bias" }
kernel.parameters = { { "BackwardBiasParams", "params" } }

function kernel.derive() return budget.of_threads(256, 256 * 4) end

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
