-- The derivatives of the loss by a chunk of the logits, on sm_90a: linear_logp's mainloop with another epilogue and a store.
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local forward = require "gen.kernels.linear_logp_hopper"
local tile_config = require "gen.kernels.tile_config"
local wgmma = require "gen.wgmma"

local kernel = { dependent_launch = true }

kernel.templates = {
  "types", "params/linear_logp_backward", "simt", "convert", "mbarrier", "tma", "tma_store", "cluster", "dependent_launch", "wgmma",
  { emit = wgmma.wrapper }, "unit", "tile_product", "tile_kernel", { only = "turns", "turns" }, "tile_store", "product_tiles", "early_start", "logit_bounds",
  "row_offset", { only = "softcap", "softcap" }, "local_memory", "values_in_memory", "tile_grad_logits",
  { only = "filters", "kept_blocks" },
  "linear_logp_grad_logits",
}
kernel.parameters = {
  { "TensorMap", "hidden_map" }, { "TensorMap", "weight_map" }, { "TensorMap", "out_map" }, { "GradLogitsParams", "params" },
}

function kernel.derive(spec) return budget.with_tile_store(budget.hopper(spec)) end

function kernel.check(spec, arch)
  if spec.dtype == "f32" then return nil, "f32: the gradients' products read it across D, and WGMMA reads tf32 only along D" end
  local tile = { -- the forward's rules, except for that about splits
    dtype = spec.dtype, d = spec.d, bm = spec.bm, wg = spec.wg, bv = spec.bv, cluster = spec.cluster, stages = spec.stages, s = 4,
    dv = spec.dv, bias = spec.bias, softcap = spec.softcap, entropy = spec.entropy, vec = spec.vec, exact = spec.exact,
  }
  local legal, reason = forward.check(tile, arch)
  if not legal then return nil, reason end
  return budget.check_shared(spec, kernel.derive(spec), arch)
end

function kernel.config(spec, n)
  return tile_config.join(tile_config.tile(spec, n), tile_config.options(spec), tile_config.hopper(spec, n, 1), {
    { "using", "out_element", cxx.types[spec.dtype] }, { "bool", "adds", false }, { "bool", "filters", spec.filter or false },
  })
end

-- An element is the same sum along k in any tile, so no tile size decides on its bits.
function kernel.numerics(spec)
  return ("linear_logp_grad_logits.%s.wgmma_k16.%s.%s%s"):format(spec.softcap and "r3" or "r2", spec.dtype, spec.arch, spec.filter and ".filter_r2" or "")
end

function kernel.about(spec, n) return tile_config.about_hopper(spec, n, tile_config.computes_grad_logits(spec), "column tiles") end

return kernel
