-- The rows' losses between linear_logp and its backward: one block.
local token_loss = require "gen.token_loss"

local kernel = {}

local function loss_text(spec, read_template)
  return '#line 1 "loss"\n' .. assert(token_loss.cuda(spec.loss, read_template))
end

kernel.templates = { "types", "params/token_loss", "target", "token_loss_row", "simt", "dependent_launch", { emit = loss_text }, "token_loss" }
kernel.entry = "token_loss"
kernel.parameters = { { "TokenLossParams", "params" } }

local threads, registers = 1024, 64

function kernel.derive()
  return { threads = threads, shared_bytes = 8 * threads, registers = registers, blocks_per_multiprocessor = 65536 // (registers * threads) }
end

kernel.dependent_launch = true

-- The source of a loss that nobody has defined cannot be written.
function kernel.check() return true end

function kernel.config() return {} end

function kernel.numerics(spec) return "token_loss.r3." .. token_loss.identity(spec.loss) end

function kernel.about(spec, n)
  return {
    computes = ("loss[row] of %s from logp, lse, entropy [N], its derivatives by these, and the sum or mean"):format(spec.loss),
    grid = "one block", threads = "each its own rows in turn; sums pairwise, in fp64", shared = { { n.shared_bytes, "a sum of each thread" } },
  }
end

return kernel
