-- Results and gradients of rows of logits in one read and one write: teams of a block's warps take a row each.
local arch = require "gen.arch"
local config = require "gen.kernels.logits_logp_config"
local tile_config = require "gen.kernels.tile_config"

-- Segments of a warp that stay in shared memory. Five blocks with two segments a warp take 210 KiB. On GPUs with less, five blocks have room for one each.
local function kept_segments(spec) return arch.find(spec.arch).shared_bytes >= 210 * 1024 and 2 or 1 end

return config.kernel("logits_logp_fused", { "logits_shared", "logits_backward", "logits_logp_fused" }, {
  check = config.check_gradient,
  config = function(spec) return tile_config.join(config.entries(spec), { { "int", "kept_segments", kept_segments(spec) } }) end,
  derive = function(spec)
    return config.launch(spec, config.shared_bytes(spec, 2) + spec.w * kept_segments(spec) * config.segment_bytes, 96)
  end,
  about = function(spec, n)
    return config.about(spec, n, config.results .. "; " .. config.gradients, "persistent: rows in turn", "teams of warps take a row each",
                        config.about_sums(spec, 2),
                        { spec.w * kept_segments(spec) * config.segment_bytes, "kept: segments of a row that stay here until its sums have met" })
  end,
})
