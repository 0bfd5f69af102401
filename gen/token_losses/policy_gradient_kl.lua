-- policy_gradient plus kl_scale times an estimate of the KL divergence from a reference model: exp(d) - d - 1 with d = reference_logp - logp, which is never
-- negative and has the right mean.
return {
  inputs = { "advantages", "old_logp", "reference_logp" },
  parameters = { { "clip_low", 0.2 }, { "clip_high", 0.2 }, { "kl_scale", 0.05 } },
  loss = function(t)
    local ratio = exp(t.logp - t.old_logp)
    local clipped = clamp(ratio, 1 - t.clip_low, 1 + t.clip_high)
    local difference = t.reference_logp - t.logp
    local divergence = where(less(0, abs(t.kl_scale)), t.kl_scale * (exp(difference) - difference - 1), 0)
    -- Without an advantage nothing is gained, also where the ratio overflows. (NaN is not less than anything.)
    local gain = where(less(abs(t.advantages), 1e-37), t.advantages, min(ratio * t.advantages, clipped * t.advantages))
    return -gain + divergence
  end,
}
