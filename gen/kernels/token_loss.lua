-- linear_cross_entropy's losses of all rows and their derivatives, between linear_logp and its backward: one block.
local budget = require "gen.budget"
local token_loss = require "gen.token_loss"

local kernel = { dependent_launch = true }

-- Fails if nobody has defined the loss.
local function loss_text(spec, read_template)
  return '#line 1 "loss"\n' .. assert(token_loss.cuda(spec.loss, read_template))
end

kernel.templates = {
  "types", "params/token_loss", "target", "token_loss_row", "simt", "class_weights", "dependent_launch", "late_wait", { emit = loss_text }, "token_loss",
}
kernel.parameters = { { "TokenLossParams", "params" } }

function kernel.derive() return budget.of_threads(1024, 8 * 1024) end

function kernel.numerics(spec) return "token_loss.r3." .. token_loss.identity(spec.loss) end

function kernel.about(spec, n)
  return {
    computes = ("loss[row] of %s from logp, lse, entropy [N], its derivatives by these, and the sum or mean"):format(spec.loss),
    grid = "one block", threads = "each its own rows in turn; sums pairwise, in fp64", shared = { { n.shared_bytes, "a sum of each thread" } },
  }
end

return kernel
