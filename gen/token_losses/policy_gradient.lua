-- Policy gradient with a clipped importance ratio: advantages of the tokens, and their log-probabilities when they were sampled.
return {
  inputs = { "advantages", "old_logp" },
  parameters = { { "clip_low", 0.2 }, { "clip_high", 0.2 } },
  loss = function(t)
    local ratio = exp(t.logp - t.old_logp)
    local clipped = clamp(ratio, 1 - t.clip_low, 1 + t.clip_high)
    -- Without an advantage nothing is gained, also where the ratio overflows. (NaN is not less than anything.)
    local gain = where(less(abs(t.advantages), 1e-37), t.advantages, min(ratio * t.advantages, clipped * t.advantages))
    return -gain
  end,
}
