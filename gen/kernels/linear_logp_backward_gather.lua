-- The valid rows of hidden, close together.
local cxx = require "gen.cxx"

local kernel = {}

kernel.templates = { "types", "params/linear_logp_backward", "simt", "convert", "streaming", "vector", "dependent_launch", "linear_logp_backward_gather" }
kernel.entry = "linear_logp_backward_gather"
kernel.parameters = { { "BackwardGatherParams", "params" } }

function kernel.derive() return { threads = 256, shared_bytes = 0, registers = 64, blocks_per_multiprocessor = 65536 // (64 * 256) } end

kernel.dependent_launch = true

function kernel.check() return true end

function kernel.config(spec) return { { "using", "element", cxx.types[spec.dtype] } } end

function kernel.numerics() return "linear_logp_backward_gather.r1" end

function kernel.about()
  return { computes = "packed[i, D] = factor[i] hidden[row[i], D], zeros behind the last valid row; and zeroed sums", grid = "any number of blocks",
           threads = "vectors of 16 bytes in turn" }
end

return kernel
