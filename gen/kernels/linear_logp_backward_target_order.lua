-- linear_logp's backward: the valid rows in the order of their targets.
local budget = require "gen.budget"

local kernel = { dependent_launch = true }

kernel.templates = { "types", "params/linear_logp_backward", "simt", "dependent_launch", "linear_logp_backward_target_order" }
kernel.parameters = { { "TargetOrderParams", "params" } }

function kernel.derive() return budget.of_threads(256, 0) end

function kernel.numerics() return "linear_logp_backward_target_order.r1" end

function kernel.about()
  return { computes = "the valid rows in the order of their targets, those of one target in their own", grid = "8 threads for each row",
           threads = "a warp counts for its four rows those that come before" }
end

return kernel
