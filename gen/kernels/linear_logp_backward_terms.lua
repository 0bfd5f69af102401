-- linear_logp's backward: the rows that count in the order of their targets.

local kernel = {}

kernel.templates = { "types", "params/linear_logp_backward", "counted", "simt", "dependent_launch", "linear_logp_backward_terms" }
kernel.entry = "linear_logp_backward_terms"
kernel.parameters = { { "BackwardTermsParams", "params" } }

function kernel.derive()
  local threads = 256
  return { threads = threads, shared_bytes = 0, registers = 64, blocks_per_multiprocessor = 65536 // (64 * threads) }
end

kernel.dependent_launch = true

function kernel.check() return true end

function kernel.config() return {} end

function kernel.numerics() return "linear_logp_backward_terms.r1" end

return kernel
