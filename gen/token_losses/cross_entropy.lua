-- The negative log-probability of the target, weighted by its class, and a term that keeps the logits' sum near 1 (z-loss).
return {
  parameters = { { "lse_square_scale", 0 } },
  loss = function(t)
    -- Without a scale there is no term: lse^2, and with large logits at a small temperature lse itself, may exceed fp32's range, and 0 times infinity is NaN.
    local z_loss = where(less(0, abs(t.lse_square_scale)), t.lse_square_scale * t.lse * t.lse, 0)
    return -t.class_weight * t.logp + z_loss
  end,
}
