-- Merges the segments of rows that several blocks of logits_logp have read.
local budget = require "gen.budget"
local config = require "gen.kernels.logits_logp_config"

return config.kernel("logits_logp_combine", { "dependent_launch", "logits_logp_combine" }, {
  dependent_launch = true,
  derive = function(spec)
    local n = budget.of_threads(spec.w * 32, 0)
    n.block_columns = config.segment_columns(spec)
    return n
  end,
  about = function(spec, n)
    return config.about(spec, n, config.results .. ", from the sums of segments that several blocks have read", "one warp a row", "a row each warp")
  end,
})
