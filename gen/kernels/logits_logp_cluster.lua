-- logits_logp of few rows: a cluster of blocks takes a row.
local config = require "gen.kernels.logits_logp_config"

local clusters = { [2] = true, [4] = true, [8] = true, [16] = true }

return config.kernel("logits_logp", { "dependent_launch", "mbarrier", "cluster", "logits_shared", "logits_logp_cluster" }, {
  check = function(spec, device)
    if not device.clusters then return nil, ("%s has no clusters"):format(spec.arch) end
    if not clusters[spec.cluster] then return nil, ("c = %d: 2, 4, 8 or 16"):format(spec.cluster) end
    return config.check(spec)
  end,
  -- Shared memory has the sums of one row, and the mbarrier that counts them. block_rows: of a cluster.
  derive = function(spec)
    local n = config.launch(spec, (config.shared_bytes(spec, 1) + 8 + 15) // 16 * 16)
    n.block_rows = 1
    return n
  end,
  about = function(spec, n)
    return config.about(spec, n, config.results, "a cluster takes a row at a time",
                        "each warp of the cluster sums segments; the first warp of its first block merges them", config.about_sums(spec, 1))
  end,
})
