-- Where each row's target lies, of a shard of the vocabulary.
local budget = require "gen.budget"

local kernel = {}

kernel.templates = { "types", "params/linear_logp_shard", "target", "linear_logp_shard_targets" }
kernel.parameters = { { "ShardTargetsParams", "params" } }

function kernel.derive() return budget.of_threads(256, 0) end

function kernel.numerics() return "linear_logp_shard_targets.r1" end

function kernel.about()
  return { computes = "entry[row] = target[row] - the shard's first, or why the target has none there", grid = "ceil(N / threads) blocks", threads = "a row each" }
end

return kernel
