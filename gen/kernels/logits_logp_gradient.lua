-- Gradients of logits whose lse is known: a warp takes a segment at a time.
local config = require "gen.kernels.logits_logp_config"

local kernel = { dependent_launch = true }

kernel.templates = config.templates { "dependent_launch", "logits_backward", "logits_logp_gradient" }
kernel.parameters = { { "LogitsLogpParams", "params" } }
kernel.config = config.entries

function kernel.check(spec)
  if spec.argmax then return nil, "argmax: a gradient has none" end
  return config.check(spec)
end

function kernel.derive(spec) return config.launch(spec, 0) end

function kernel.numerics(spec) return config.numerics("logits_logp_gradient", spec) end

function kernel.about(spec, n)
  return config.about(spec, n, config.gradients .. ", from a known lse", "persistent: segments in turn", "a segment each warp at a time")
end

return kernel
