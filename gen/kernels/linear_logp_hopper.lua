-- linear_logp on sm_90a: TMA and WGMMA.
local budget = require "gen.budget"
local tile_config = require "gen.kernels.tile_config"
local wgmma = require "gen.wgmma"

local kernel = {}

kernel.templates = tile_config.join({
  "types", "params/linear_logp", "target", "simt", "mbarrier", "tma", "cluster", "dependent_launch", "wgmma",
  { emit = wgmma.wrapper }, { only = "f32", "ldmatrix" }, "unit", "tile_product", { only = "f32", "split_operands" }, "tile_kernel",
  { only = "turns", "turns" },
}, tile_config.statistics_templates, { { only = "tickets", "tickets" }, "statistics_kernel", "linear_logp" })
kernel.parameters = {
  { "TensorMap", "hidden_map" }, { "TensorMap", "weight_map" }, { "LinearLogpParams", "params" },
}

function kernel.derive(spec) return budget.with_tickets(budget.with_kept_statistics(budget.hopper(spec), spec), spec) end

function kernel.check(spec, arch)
  local f32 = spec.dtype == "f32"
  if spec.exact then return nil, "exact: WGMMA has no fp32 product; the portable kernel multiplies and adds" end
  if f32 and spec.dv then return nil, "dv: WGMMA reads tf32 only along D; the portable kernel takes fp32 [D, V]" end
  if spec.vec then return nil, ("vec = %d: TMA copies 16 bytes at a time, always"):format(spec.vec) end
  if spec.wg and (spec.wg ~= 128 or f32) then return nil, ("wg = %d: 128, and not of fp32"):format(spec.wg) end
  if not spec.wg and spec.bm ~= 64 and spec.bm ~= 128 then return nil, ("bm = %d: 64 or 128, one or two consumer warpgroups"):format(spec.bm) end
  if spec.wg and spec.bm ~= 128 and spec.bm ~= 256 then return nil, ("bm = %d: with wg = 128 a multiple of it, 128 or 256"):format(spec.bm) end
  -- A thread has an accumulator for each two columns. With warpgroups of 128 rows, and with fp32, which has a stage's sums beside the accumulators, it has two;
  -- fp32 also takes registers for A's tf32 parts.
  local widest = f32 and 168 or spec.wg and 192 or 256
  -- The TMA boxes of a [D, V] weight have 64 columns, and so have the boxes that the other kernels with this mainloop store.
  local multiple = (spec.dv or spec.operator ~= "linear_logp") and 64 or 8
  if spec.bv % multiple ~= 0 or spec.bv > widest then return nil, ("bv = %d: a multiple of %d up to %d"):format(spec.bv, multiple, widest) end
  if spec.cluster > 2 then return nil, ("c = %d: 1 or 2"):format(spec.cluster) end
  -- In a backward's workspace rows are rounded up to 256 (FLP_BACKWARD_ROW_BLOCK; plans check this limit, too). The last rows of a taller cluster would
  -- overwrite saved exponentials of the next columns.
  if spec.operator ~= "linear_logp" and spec.bm * spec.cluster > 256 then
    return nil, ("bm = %d: with gradients at most 256 rows in c = %d blocks"):format(spec.bm, spec.cluster)
  end
  if spec.bv % (8 * spec.cluster) ~= 0 then return nil, ("bv = %d: a multiple of %d for c = %d blocks"):format(spec.bv, 8 * spec.cluster, spec.cluster) end
  -- Blocks of a cluster load equal shares of the weight tile, whose boxes in the [D, V] layout are 64 columns wide.
  if spec.dv and spec.bv // 64 % spec.cluster ~= 0 then
    return nil, ("bv = %d: for dv a multiple of %d, whole boxes for each of c = %d blocks"):format(spec.bv, 64 * spec.cluster, spec.cluster)
  end
  if spec.s < 4 then return nil, ("s = %d: at least 4"):format(spec.s) end
  if spec.stages < 2 then return nil, ("p = %d: at least 2 stages"):format(spec.stages) end
  return budget.check_shared(spec, kernel.derive(spec), arch)
end

-- The weight is read once, so the L2 had better keep hidden (b_is_read_once): 2.5 % faster at N = 128, 1 % at 256, 0.5 % at more (bench/results/NOTES.md). fp32
-- was not measured and goes without.
function kernel.config(spec, n)
  return tile_config.join(tile_config.tile(spec, n), tile_config.options(spec), tile_config.hopper(spec, n, n.steps_together, spec.dtype ~= "f32"),
    { { "bool", "takes_tickets", budget.takes_tickets(spec) } })
end

function kernel.numerics(spec)
  local n, f32 = kernel.derive(spec), spec.dtype == "f32"
  local revision = (f32 and 4 or 3) + (spec.softcap and 1 or 0)
  return ("linear_logp.r%d.%swgmma_m64n%dk%d.%s.bv%d.s%d.%s"):format(
    revision, f32 and "3xtf32_" or "", spec.bv, n.wgmma_k, spec.dtype, spec.bv, spec.s, spec.arch)
end

function kernel.about(spec, n) return tile_config.about_hopper(spec, n, tile_config.computes_statistics(spec), "splits") end

return kernel
