-- weighted_sum's grad_w: adds the tiles' sums.
local budget = require "gen.budget"
local cxx = require "gen.cxx"

local kernel = { dependent_launch = true }

kernel.templates = { "types", "params/weighted_sum", "simt", "convert", "dependent_launch", "weighted_sum_combine" }
kernel.parameters = { { "WeightedSumCombineParams", "params" } }

function kernel.derive() return budget.of_threads(512, 2048) end

function kernel.config(spec) return { { "using", "weight_gradient_element", cxx.types[spec.gw] } } end

function kernel.numerics(spec) return ("weighted_sum_combine.r1.gw_%s"):format(spec.gw) end

function kernel.about(_, n)
  return { computes = "grad_w[d] = the sum of the tiles' parts [tiles, D]", grid = "a block for each 32 columns",
           threads = "warp i adds tiles i, i + 16, ..., then the warps' sums in their order", shared = { { n.shared_bytes, "the warps' sums" } } }
end

return kernel
