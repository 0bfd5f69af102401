-- logits_logp: a team of warps takes a row of logits, or a part of one.
local config = require "gen.kernels.logits_logp_config"

local kernel = {}

kernel.templates = config.templates { "logits_shared", "logits_logp" }
kernel.entry = "logits_logp"
kernel.parameters = { { "LogitsLogpParams", "params" } }
kernel.check = config.check
kernel.config = config.entries

function kernel.derive(spec) return config.launch(spec, config.shared_bytes(spec, spec.w)) end

function kernel.numerics(spec) return config.numerics("logits_logp", spec) end

return kernel
