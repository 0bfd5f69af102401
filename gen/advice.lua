-- What serves a GPU whose memory is slow beside its tensor cores better than selection's own tiles, where no record says more: a tuning's text.
--
-- Selection follows the architecture, and its tiles are those that an H200 does best with. An H100 has the same tensor cores, but 70 % of the memory's
-- bandwidth: there tiles that read less for a flop win over those whose storing lies under other products. bench/results/NOTES.md has what each rule brings.
local model = require "gen.model"
local tile_config = require "gen.kernels.tile_config"

local advice = {}

-- Bytes of memory for a flop of 16-bit products: 0.0031 of an H100 (3.35 TB/s), 0.0046 of an H200 (4.92).
local slow_below = 0.0038

local function is_slow(facts)
  return facts.memory < slow_below * facts.multiprocessors * facts.clock_hz * model.coefficients.hopper.flops
end

-- Facts that make any rule count, for whoever prepares kernels for GPUs that are not there.
advice.any_slow = { memory = 1 }

-- Of so few rows sums are short, and what storing takes, or adding targets to a [D, V] grad_weight, is hidden by turns all the same.
local function sums_are_short(p) return p.n <= ((p.grad_weight == "f32" or p.dv) and 2048 or 1024) end

-- By operator: what stands in place of fields of a spec, or nil. group: that of its launch, 0 where the launch decides.
local rules = {
  -- Two warpgroups share a tile of 128 x 256 in place of taking turns with 128 x 128 each. With 128 x 192 they read less, and keep their turns.
  matrix_product = function(p, spec)
    if spec.wg ~= 128 or spec.bv ~= 128 or sums_are_short(p) then return nil end
    if spec.targets == "in_columns" and tile_config.has_registers_for_wide_columns(spec) then return { "bv=192", "stages=4" } end
    return { "bv=256", "stages=4", "wg=64" }
  end,
  -- Two blocks share the weight's columns, and a group has as many rows as before. Boxes of a [D, V] weight are too wide for that: there two warpgroups
  -- share them, with 128 rows each, where rows are many, and products so long that what lies behind them does not count.
  linear_logp_save_exp = function(p, spec, group)
    if spec.wg ~= 128 or spec.bm ~= 128 or spec.cluster > 1 or p.n <= 2048 then return nil end
    if spec.dv then return p.n > 4096 and spec.d > 2048 and { "bm=256", "stages=3" } or nil end
    return { "cluster=2", ("group=%d"):format((group + 1) // 2) }
  end,
}

-- "" where there is nothing to advise. kernels: as select gives them; specs: theirs, with their roles; facts: as model.known gives them.
function advice.text(p, kernels, specs, facts)
  local items = {}
  for i, spec in ipairs(is_slow(facts) and specs or {}) do
    local rule = rules[spec.operator]
    for _, item in ipairs(rule and rule(p, spec, kernels[i].group) or {}) do items[#items + 1] = spec.role .. "." .. item end
  end
  table.sort(items)
  return table.concat(items, ",")
end

return advice
