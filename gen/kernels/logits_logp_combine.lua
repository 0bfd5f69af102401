-- Merges the segments of rows that several blocks of logits_logp have read.
local budget = require "gen.budget"
local config = require "gen.kernels.logits_logp_config"

local kernel = { dependent_launch = true }

kernel.templates = config.templates { "dependent_launch", "logits_logp_combine" }
kernel.parameters = { { "LogitsLogpParams", "params" } }
kernel.check = config.check
kernel.config = config.entries

function kernel.derive(spec)
  local n = budget.of_threads(spec.w * 32, 0)
  n.block_columns = config.segment_columns(spec)
  return n
end

function kernel.numerics(spec) return config.numerics("logits_logp_combine", spec) end

function kernel.about(spec, n)
  return config.about(spec, n, config.results .. ", from the sums of segments that several blocks have read", "one warp a row", "a row each warp")
end

return kernel
