-- Gradients of logits whose lse is known: a warp takes a segment at a time.
local config = require "gen.kernels.logits_logp_config"

return config.kernel("logits_logp_gradient", { "dependent_launch", "logits_backward", "logits_logp_gradient" }, {
  dependent_launch = true,
  check = config.check_gradient,
  derive = function(spec) return config.launch(spec, 0) end,
  about = function(spec, n)
    return config.about(spec, n, config.gradients .. ", from a known lse", "persistent: segments in turn", "a segment each warp at a time")
  end,
})
