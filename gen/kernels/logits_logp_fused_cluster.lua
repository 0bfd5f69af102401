-- Results and gradients of long rows of logits in one read and one write: a cluster of blocks takes a row, which stays in its shared memory.
local config = require "gen.kernels.logits_logp_config"
local tile_config = require "gen.kernels.tile_config"

-- slots: segments that a block has room for; with the sums of four rows they fill a multiprocessor's shared memory. records: rows that a block can know of.
local slots, records, record_bytes = 48, 8, 56
local clusters = { [1] = true, [2] = true, [4] = true, [8] = true }

return config.kernel("logits_logp_fused", {
  "mbarrier", "tma", "cluster", "logits_slot", "logits_shared", "logits_backward", "logits_logp_fused_cluster",
}, {
  slots = slots,
  config = function(spec) return tile_config.join(config.entries(spec), { { "int", "slots", slots }, { "int", "records", records } }) end,
  check = function(spec, device)
    if not device.clusters then return nil, ("%s has no clusters"):format(spec.arch) end
    if not clusters[spec.cluster] then return nil, ("c = %d: 1, 2, 4 or 8"):format(spec.cluster) end
    return config.check_gradient(spec)
  end,
  -- The longest row, in logits, that a cluster has room for.
  longest_row = function(spec) return spec.cluster * slots * config.segment_columns(spec) end,
  -- block_rows: a cluster has one row at a time, however short. Hardware allocates registers for four warps at a time.
  derive = function(spec)
    return {
      threads = spec.w * 32, registers = math.min(255, 65536 // ((spec.w + 3) // 4 * 128) // 8 * 8), block_rows = 1,
      block_columns = config.segment_columns(spec), blocks_per_multiprocessor = 1,
      shared_bytes = (slots * config.slot_bytes + config.shared_bytes(spec, 4) + records * record_bytes + 8 * (slots + 3 * records + 4) + 15) // 16 * 16,
    }
  end,
  about = function(spec, n)
    return config.about(spec, n, config.results .. "; " .. config.gradients, "persistent: a cluster takes a row at a time",
                        ("%d warps sum segments and write gradients; the last one fetches rows to come and merges sums"):format(spec.w - 1),
                        { slots * config.slot_bytes, "slots: segments that the copy engine brings" }, config.about_sums(spec, 4),
                        { records * record_bytes, "records: of rows under way" })
  end,
})
