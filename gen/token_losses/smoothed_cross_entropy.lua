-- cross_entropy against a target that spreads label_smoothing of its weight evenly over the vocabulary.
return {
  parameters = { { "lse_square_scale", 0 }, { "label_smoothing", 0 } },
  loss = function(t)
    local uniform = where(less(0, t.label_smoothing), t.label_smoothing * t.uniform, 0)
    local z_loss = where(less(0, abs(t.lse_square_scale)), t.lse_square_scale * t.lse * t.lse, 0) -- as cross_entropy's
    return (t.label_smoothing - 1) * t.class_weight * t.logp + uniform + z_loss
  end,
}
