-- Merges the splits of linear_logp: one warp a row.
local budget = require "gen.budget"
local tile_config = require "gen.kernels.tile_config"

local kernel = { dependent_launch = true }

-- With what it is made of: the kernels that merge shards take this too.
kernel.merging = { "target", "simt", "tally", "logit_bounds", "row_offset", "dependent_launch", "linear_logp_combine" }
kernel.templates = tile_config.join({ "types", "params/linear_logp" }, kernel.merging)
kernel.parameters = { { "LinearLogpCombineParams", "params" } }

function kernel.derive(spec) return budget.of_threads(spec.bm * 32, 0) end

function kernel.check(spec)
  if spec.bm > 32 then return nil, ("bm = %d: rows of a block, one warp each, at most 32"):format(spec.bm) end
  return true
end

function kernel.config(spec)
  return {
    { "bool", "wants_argmax", spec.argmax or false }, { "bool", "wants_entropy", spec.entropy or false },
    { "bool", "wants_logit_sum", spec.logit_sum or false },
  }
end

function kernel.numerics() return "linear_logp_combine.r2" end

function kernel.about()
  return {
    computes = "logp[row] = -log1p(S 2^k / 2^z2), lse = z[target] - logp and what else is asked, from the splits' sums S [N, splits] without the target",
    grid = "ceil(N / block_rows) blocks", threads = "one warp a row; lane l adds splits l, l + 32, ..., then the lanes merge pairwise",
  }
end

return kernel
