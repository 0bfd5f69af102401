-- linear_logp's backward: the valid rows in the order of their targets.

local kernel = {}

kernel.templates = { "types", "params/linear_logp_backward", "simt", "dependent_launch", "linear_logp_backward_target_order" }
kernel.entry = "linear_logp_backward_target_order"
kernel.parameters = { { "TargetOrderParams", "params" } }

function kernel.derive()
  local threads = 256
  return { threads = threads, shared_bytes = 0, registers = 64, blocks_per_multiprocessor = 65536 // (64 * threads) }
end

kernel.dependent_launch = true

function kernel.check() return true end

function kernel.config() return {} end

function kernel.numerics() return "linear_logp_backward_target_order.r1" end

function kernel.about()
  return { computes = "the valid rows in the order of their targets, those of one target in their own", grid = "8 threads for each row",
           threads = "a warp counts for its four rows those that come before" }
end

return kernel
