-- logits_logp: a team of warps takes a row of logits, or a part of one.
local config = require "gen.kernels.logits_logp_config"

-- Bytes for the next segment of each warp, which is loaded ahead, and for the mbarrier that says that it has arrived.
local function stage_bytes(spec) return config.is_staged(spec) and (spec.w * (config.slot_bytes + 8) + 15) // 16 * 16 or 0 end

return config.kernel("logits_logp", {
  "dependent_launch", "mbarrier", { only = "staged", "tma" }, { only = "staged", "logits_slot" }, { only = "staged", "logits_in_stages" },
  { only = "unstaged", "logits_in_registers" }, "logits_shared", "logits_logp",
}, {
  -- Teams are powers of two, and an incomplete team would wait for warps that do not exist.
  check = function(spec)
    if spec.w & (spec.w - 1) ~= 0 then return nil, ("w = %d: a power of two, so that teams of warps fill a block"):format(spec.w) end
    return config.check(spec)
  end,
  -- For each warp there are sums of a row, and the mbarrier that counts them. Where a warp holds a whole row (half), neither is needed.
  derive = function(spec)
    return config.launch(spec, spec.half and 0 or (stage_bytes(spec) + config.shared_bytes(spec, spec.w) + spec.w * 8 + 15) // 16 * 16)
  end,
  about = function(spec, n)
    return config.about(spec, n, config.results, "persistent: rows, or with few rows their parts, in turn",
                        "teams of warps take a row; its segments go round robin to them", not spec.half and config.about_sums(spec, spec.w) or nil,
                        config.is_staged(spec) and { stage_bytes(spec), "stages: of each warp the segment that comes next" } or nil)
  end,
})
