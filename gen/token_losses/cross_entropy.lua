-- The negative log-probability of the target, weighted by its class, and a term that keeps the logits' sum near 1 (z-loss).
return {
  parameters = { { "lse_square_scale", 0 } },
  loss = function(t) return -t.class_weight * t.logp + t.lse_square_scale * t.lse * t.lse end, -- lse^2 may be more than fp32 holds
}
