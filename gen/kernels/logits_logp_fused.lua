-- Results and gradients of rows of logits in one read and one write: teams of a block's warps take a row each.
local arch = require "gen.arch"
local config = require "gen.kernels.logits_logp_config"

local kernel = {}

kernel.templates = config.templates { "logits_shared", "logits_backward", "logits_logp_fused" }
kernel.parameters = { { "LogitsLogpParams", "params" } }

-- Segments of a warp that stay in shared memory. Five blocks with two of them take 210 KiB; where there is less, one keeps as many blocks.
local function kept_segments(spec) return arch.find(spec.arch).shared_bytes >= 210 * 1024 and 2 or 1 end

function kernel.config(spec)
  local entries = config.entries(spec)
  entries[#entries + 1] = { "int", "kept_segments", kept_segments(spec) }
  return entries
end

function kernel.check(spec)
  if spec.argmax then return nil, "argmax: a gradient has none" end
  return config.check(spec)
end

function kernel.derive(spec)
  return config.launch(spec, config.shared_bytes(spec, 2) + spec.w * kept_segments(spec) * config.segment_bytes, 96)
end

function kernel.numerics(spec) return config.numerics("logits_logp_fused", spec) end

function kernel.about(spec, n)
  return config.about(spec, n, config.results .. "; " .. config.gradients, "persistent: rows in turn", "teams of warps take a row each",
                      config.about_sums(spec, 2),
                      { spec.w * kept_segments(spec) * config.segment_bytes, "kept: segments of a row that stay here until its sums have met" })
end

return kernel
