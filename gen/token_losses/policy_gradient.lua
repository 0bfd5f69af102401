-- Policy gradient with a clipped importance ratio: advantages of the tokens, and their log-probabilities when they were sampled.
return {
  inputs = { "advantages", "old_logp" },
  parameters = { { "clip_low", 0.2 }, { "clip_high", 0.2 } },
  loss = function(t)
    local ratio = exp(min(t.logp - t.old_logp, 80)) -- finite, so that an advantage of 0 gives 0
    local clipped = clamp(ratio, 1 - t.clip_low, 1 + t.clip_high)
    return -min(ratio * t.advantages, clipped * t.advantages)
  end,
}
