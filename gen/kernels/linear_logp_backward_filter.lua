-- What the gradient filter kept of a chunk: one block.
local budget = require "gen.budget"

local kernel = { dependent_launch = true }

kernel.templates = { "types", "params/linear_logp_backward", "simt", "tally", "dependent_launch", "linear_logp_backward_filter" }
kernel.parameters = { { "BackwardFilterParams", "params" } }

function kernel.derive() return budget.of_threads(1024, 0) end

function kernel.numerics() return "linear_logp_backward_filter.r1" end

function kernel.about()
  return { computes = "how many blocks of a chunk's derivatives the gradient filter kept, of how many; clears their bits", grid = "one block",
           threads = "words of bits in turn" }
end

return kernel
