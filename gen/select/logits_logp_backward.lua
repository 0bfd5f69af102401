-- logits_logp_backward: from a problem and a device to variants. The gradient kernel; with `fused` also the kernel that computes forward and gradients in one,
-- and the forward's kernels.
local arch = require "gen.arch"
local cluster_kernel = require "gen.kernels.logits_logp_fused_cluster"
local logits_config = require "gen.kernels.logits_logp_config"
local logits_logp = require "gen.select.logits_logp"

local backward = {}

local cluster_warps = 16 -- of a block: those that share a row

-- The fused kernel. A row of medium length is shared by a cluster of blocks: of at most 8, and no more than it takes to leave each warp one segment of the row.
-- Shorter rows, and longer ones than 8 blocks have room for, are computed by blocks that take several rows each.
local function fused(p, arch_name)
  local columns = logits_config.segment_columns(p)
  local segments = (p.v + columns - 1) // columns
  if not arch.find(arch_name).clusters or segments <= cluster_warps // 2 or segments > 8 * cluster_kernel.slots then
    return { role = "fused", operator = "logits_logp_fused", w = 4 }
  end
  local cluster = 1
  while cluster < 8 and segments > cluster * cluster_warps do cluster = cluster * 2 end
  -- One warp more, the keeper, merges rows and fetches the next ones. 16-bit logits take more arithmetic a byte, hence more warps. The entropy, and rows at any
  -- address, take registers, hence fewer. With a softcap, 16 warps for 16 segments are faster than 19 or 15 (on an H100, bf16 4096 x 131072 at 0.70, 0.64 and
  -- 0.60 of a copy's speed, 8192 x 32768 at 0.76, 0.59 and 0.59); with rows at any address, 17 warps in all would spill.
  local narrow, aligned = p.element_bytes == 2, logits_logp.vector_bytes(p) == 16
  local warps
  if p.softcap then warps = aligned and cluster_warps + 1 or narrow and p.entropy and 8 or cluster_warps
  elseif p.entropy then warps = cluster_warps
  else warps = narrow and 20 or aligned and cluster_warps + 1 or cluster_warps end
  return { role = "fused", operator = "logits_logp_fused_cluster", w = warps, cluster = cluster }
end

-- The gradient kernel, for rows whose lse is known. Many small blocks are fastest: bf16 4096 x 131072 at 0.956 of a copy's speed with 3 warps, 0.949 with 2,
-- 0.931 with 4, 0.925 with 8. With a softcap's arithmetic, 2 warps of 128 registers a thread are fastest (on an H100 0.956; 4 warps of 96 0.918).
-- bench/results/NOTES.md.
local function gradient(p)
  local aligned = logits_logp.vector_bytes(p) == 16
  return { role = "gradient", operator = "logits_logp_gradient", w = p.softcap and 2 or aligned and 3 or 4 }
end

local function specs_for(p, arch_name)
  local specs = { gradient(p) }
  if p.fused then
    specs[2] = fused(p, arch_name)
    for _, spec in ipairs(logits_logp.forward(p, arch_name)) do specs[#specs + 1] = spec end
  end
  return specs
end

logits_logp.paths(backward, specs_for)

function backward.prebuilt(dtype)
  return { ("logits_logp_backward:%s:n4096:v131072"):format(dtype), ("logits_logp_backward:%s:n4096:v131072:fused"):format(dtype),
           ("logits_logp_backward:%s:n4096:v32768:fused"):format(dtype) }
end

return backward
