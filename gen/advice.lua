-- Default tuning for GPUs whose memory is slow relative to their tensor cores, used where no record applies.
--
-- Selection depends on the architecture alone, and its tiles are the fastest ones on an H200. An H100 has the same tensor cores, but only 70 % of the memory
-- bandwidth. There, tiles that read fewer bytes a flop beat the ping-pong tiles, which hide the store of one warpgroup behind the products of the other.
-- bench/results/NOTES.md says what each rule gains.
local model = require "gen.model"
local tile_config = require "gen.kernels.tile_config"

local advice = {}

-- The memory is slow if it has fewer bytes than this for a flop of 16-bit products. An H100 has 0.0031 (3.35 TB/s), an H200 0.0046 (4.92 TB/s).
local slow_below = 0.0038

local function is_slow(facts)
  return facts.memory < slow_below * facts.multiprocessors * facts.clock_hz * model.coefficients.hopper.flops
end

-- Device facts by which every GPU's memory is slow: for prebuilds, which compile kernels for GPUs that are not present.
advice.any_slow = { memory = 1 }

-- Whether the sums of grad_weight, which have n terms, are so short that ping-pong tiles are kept all the same: they hide the store of a tile, or the adding of
-- targets to a [D, V] grad_weight.
local function sums_are_short(p) return p.n <= ((p.grad_weight == "f32" or p.dv) and 2048 or 1024) end

-- By operator: a function that returns the advised fields of a kernel as a list of "field=number", or nil if selection's own tile stays.
local rules = {
  -- A cooperative tile of 128 x 256 replaces the ping-pong tiles of 128 x 128. With targets in columns, and registers enough, ping-pong tiles of 128 x 192 do:
  -- they, too, read less than 128 x 128.
  matrix_product = function(p, spec)
    if spec.wg ~= 128 or spec.bv ~= 128 or sums_are_short(p) then return nil end
    if spec.targets == "in_columns" and tile_config.has_registers_for_wide_columns(spec) then return { "bv=192", "stages=4" } end
    return { "bv=256", "stages=4", "wg=64" }
  end,
  -- Clusters of two blocks share the loads of the weight's tiles (multicast). The group is halved, so that it has as many rows as before. A tile of a [D, V]
  -- weight has three TMA boxes, which two blocks cannot share equally. There, a cooperative tile of 256 rows, 128 for each warpgroup, is advised instead, but
  -- only with many rows, and with products so long that the epilogue's time does not matter.
  linear_logp_save_exp = function(p, spec)
    if spec.wg ~= 128 or spec.bm ~= 128 or spec.cluster > 1 or p.n <= 2048 then return nil end
    if spec.dv then return p.n > 4096 and spec.d > 2048 and { "bm=256", "stages=3" } or nil end
    return { "cluster=2", ("group=%d"):format((spec.group + 1) // 2) }
  end,
}

-- The advised tuning's text; "" if there is none. specs: of selection's own kernels, from tuning.specs_of; facts: from model.known.
function advice.text(p, specs, facts)
  local items = {}
  for _, spec in ipairs(is_slow(facts) and specs or {}) do
    local rule = rules[spec.operator]
    for _, item in ipairs(rule and rule(p, spec) or {}) do items[#items + 1] = spec.role .. "." .. item end
  end
  table.sort(items)
  return table.concat(items, ",")
end

return advice
