-- logits_logp: a team of warps takes a row of logits, or a part of one.
local config = require "gen.kernels.logits_logp_config"

local kernel = {}

kernel.templates = config.templates { "dependent_launch", "mbarrier", "logits_shared", "logits_logp" }
kernel.parameters = { { "LogitsLogpParams", "params" } }

-- Teams are powers of two, and a team that is not whole waits for warps that there are not.
function kernel.check(spec, device)
  if spec.w & (spec.w - 1) ~= 0 then return nil, ("w = %d: a power of two, so that teams of warps fill a block"):format(spec.w) end
  return config.check(spec, device)
end

kernel.config = config.entries

-- Each warp has the sums of a row, and the barrier at which they meet; one that holds a whole row needs neither.
function kernel.derive(spec) return config.launch(spec, spec.half and 0 or (config.shared_bytes(spec, spec.w) + spec.w * 8 + 15) // 16 * 16) end

function kernel.numerics(spec) return config.numerics("logits_logp", spec) end

function kernel.about(spec, n)
  return config.about(spec, n, config.results, "persistent: rows, or with few rows their parts, in turn",
                      "teams of warps take a row; its segments go round robin to them", not spec.half and config.about_sums(spec, spec.w) or nil)
end

return kernel
