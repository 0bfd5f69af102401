-- Merges the shards of a vocabulary: one thread a row.
local budget = require "gen.budget"
local combine = require "gen.kernels.linear_logp_combine"
local tile_config = require "gen.kernels.tile_config"

local kernel = { dependent_launch = true }

kernel.templates = tile_config.join({ "types", "params/linear_logp", "params/linear_logp_shard" }, combine.merging, { "linear_logp_merge" })
kernel.parameters = { { "LinearMergeParams", "params" } }

function kernel.derive() return budget.of_threads(256, 0) end

function kernel.numerics() return "linear_logp_merge.r1" end

function kernel.about()
  return { computes = "logp, lse, entropy and argmax of each row from what the shards have left of it, [ranks, N]", grid = "ceil(N / threads) blocks",
           threads = "a row each, the shards in their order" }
end

return kernel
