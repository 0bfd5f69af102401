-- Merges the splits of linear_logp into what a shard of the vocabulary leaves of a row: one warp a row.
local combine = require "gen.kernels.linear_logp_combine"
local tile_config = require "gen.kernels.tile_config"

local kernel = { dependent_launch = true, derive = combine.derive, check = combine.check, config = combine.config }

kernel.templates = tile_config.join({ "types", "params/linear_logp", "params/linear_logp_shard" }, combine.merging, { "linear_logp_partials" })
kernel.parameters = { { "LinearPartialsParams", "params" } }

function kernel.numerics() return "linear_logp_partials.r1" end

function kernel.about()
  return {
    computes = "of each row the offset k, S = sum_v 2^(z2[v] - k) without the target, the target's logit and what else is asked, from the splits' [N, splits]",
    grid = "ceil(N / block_rows) blocks", threads = "one warp a row; lane l adds splits l, l + 32, ..., then the lanes merge pairwise",
  }
end

return kernel
