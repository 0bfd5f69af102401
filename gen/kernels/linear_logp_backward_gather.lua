-- The valid rows of hidden, close together.
local budget = require "gen.budget"
local cxx = require "gen.cxx"

local kernel = { dependent_launch = true }

kernel.templates = { "types", "params/linear_logp_backward", "simt", "convert", "streaming", "vector", "dependent_launch", "linear_logp_backward_gather" }
kernel.parameters = { { "BackwardGatherParams", "params" } }

function kernel.derive() return budget.of_threads(256, 0) end

function kernel.config(spec) return { { "using", "element", cxx.types[spec.dtype] } } end

function kernel.numerics() return "linear_logp_backward_gather.r1" end

function kernel.about()
  return { computes = "packed[i, D] = factor[i] hidden[row[i], D], zeros behind the last valid row; and zeroed sums", grid = "any number of blocks",
           threads = "vectors of 16 bytes in turn" }
end

return kernel
