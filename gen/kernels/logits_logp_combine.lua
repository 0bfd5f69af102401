-- Merges the segments of rows that several blocks of logits_logp have read.
local config = require "gen.kernels.logits_logp_config"

local kernel = {}

kernel.templates = config.templates { "dependent_launch", "logits_logp_combine" }
kernel.entry = "logits_logp_combine"
kernel.parameters = { { "LogitsLogpParams", "params" } }
kernel.check = config.check
kernel.config = config.entries

function kernel.derive(spec)
  return {
    threads = spec.w * 32, shared_bytes = 0, registers = 64, block_vocab = config.segment_columns(spec),
    blocks_per_multiprocessor = math.max(1, 1024 // (spec.w * 32)),
  }
end

kernel.dependent_launch = true

function kernel.numerics(spec) return config.numerics("logits_logp_combine", spec) end

function kernel.about(spec, n)
  return config.about(spec, n, config.results .. ", from the sums of segments that several blocks have read", "one warp a row", "a row each warp")
end

return kernel
