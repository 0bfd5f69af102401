-- linear_logp's backward over a shard of the vocabulary: targets of other shards contribute nothing.
local budget = require "gen.budget"

local kernel = {}

kernel.templates = { "types", "params/linear_logp_shard", "linear_logp_backward_other_shards" }
kernel.parameters = { { "OtherShardsParams", "params" } }

function kernel.derive() return budget.of_threads(256, 0) end

function kernel.numerics() return "linear_logp_backward_other_shards.r1" end

function kernel.about()
  return { computes = "targets of other shards become entry 0 with a derivative of 0", grid = "any number of blocks", threads = "a row each" }
end

return kernel
