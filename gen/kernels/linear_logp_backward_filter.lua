-- What the gradient filter kept of a chunk: one block.

local kernel = {}

kernel.templates = { "types", "params/linear_logp_backward", "simt", "tally", "dependent_launch", "linear_logp_backward_filter" }
kernel.entry = "linear_logp_backward_filter"
kernel.parameters = { { "BackwardFilterParams", "params" } }

function kernel.derive() return { threads = 1024, shared_bytes = 0, registers = 64, blocks_per_multiprocessor = 65536 // (64 * 1024) } end

kernel.dependent_launch = true

function kernel.check() return true end

function kernel.config() return {  } end

function kernel.numerics() return "linear_logp_backward_filter.r1" end

function kernel.about()
  return { computes = "how many blocks of a chunk's derivatives the gradient filter kept, of how many; clears their bits", grid = "one block",
           threads = "words of bits in turn" }
end

return kernel
