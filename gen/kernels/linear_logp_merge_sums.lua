-- Beside the merge of a vocabulary's shards, what linear_cross_entropy takes of them: one thread a row.
local budget = require "gen.budget"

local kernel = { dependent_launch = true }

kernel.templates = { "types", "params/linear_logp_merge_sums", "target", "simt", "dependent_launch", "linear_logp_merge_sums" }
kernel.parameters = { { "LinearMergeSumsParams", "params" } }

function kernel.derive() return budget.of_threads(256, 0) end

function kernel.numerics() return "linear_logp_merge_sums.r1" end

function kernel.about()
  return { computes = "the sum of each row's logits from what the shards have left of it, [ranks, N]; lse and entropy 0 of rows that do not count",
           grid = "ceil(N / threads) blocks", threads = "a row each, the shards in their order" }
end

return kernel
