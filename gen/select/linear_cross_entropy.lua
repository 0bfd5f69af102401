-- linear_cross_entropy: from a problem and a device to variants. The kernels are
--   linear_logp's two, for the packed valid rows; for a shard of the vocabulary linear_logp's for all rows, and merge_sums, which merges what else the loss
--     takes from the shards;
--   the loss;
--   with gradients those of linear_logp_backward, without gradients those that pack the valid rows.
local backward = require "gen.select.linear_logp_backward"
local linear_logp = require "gen.select.linear_logp"
local select = require "gen.select"
local token_loss = require "gen.token_loss"

local cross_entropy = {}

-- path: "hopper" or "portable", a function of the operators' modules.
local function gradients(p, capability, path)
  local by = p.loss.derivatives
  local changes = { g_entropy = by.entropy ~= nil, entropy = false, logit_sum = by.uniform ~= nil }
  return backward[path](setmetatable(changes, { __index = p }), capability)
end

local function shard_forward(p, capability, path, changes)
  local forward, reason = linear_logp[path](setmetatable(changes, { __index = p }), capability)
  if not forward then return nil, reason end
  return select.join(forward, select.of(p, forward.path, { { role = "merge_sums", operator = "linear_logp_merge_sums", arch = forward.arch } }))
end

local function choose(p, capability, path)
  local uses, has_gradients = p.loss.uses, p.grad_hidden or p.grad_weight or p.grad_bias
  local changes = { entropy = p.entropy or uses.entropy or false, logit_sum = uses.uniform }
  local forward, reason = (p.vocab_total and shard_forward or backward.packed_forward)(p, capability, path, changes)
  if not forward then return nil, reason end
  local loss = select.of(p, forward.path, { { role = "token_loss", operator = "token_loss", loss = p.token_loss, arch = forward.arch } })
  local others
  if has_gradients then others, reason = gradients(p, capability, path)
  else others, reason = backward.packing(p, forward) end
  if not others then return nil, reason end
  return select.join(select.join(forward, loss), others)
end

function cross_entropy.hopper(p, capability) return choose(p, capability, "hopper") end
function cross_entropy.portable(p, capability) return choose(p, capability, "portable") end

-- The losses that come with the library, and those that are defined.
local function losses()
  local names = { ":smoothing", ":loss_policy_gradient", ":loss_policy_gradient_kl" }
  for _, name in ipairs(token_loss.own) do names[#names + 1] = ":loss_" .. name end
  return names
end

-- Problems whose kernels a prebuild compiles: training and the loss alone, but none in fp32. hidden_sizes: nil for the common ones.
function cross_entropy.prebuilt(dtype, hidden_sizes)
  local problems = {}
  if dtype == "f32" then return problems end
  -- saving: the hints of plans that may save exponentials: without room for any, with room for those of a part of the vocabulary, and with room for all. (With
  -- room for scaled rows, too, and without a grad_bias, hidden_first is added.) plain: those of plans that save none: in chunks of the vocabulary, and with all
  -- of it at once.
  local saving, plain = { "", ":saved_exp", ":saved_exp:direct" }, { "", ":direct" }
  local function add(problem)
    local options = backward.training_options(dtype)
    for _, option in ipairs(options) do
      local saves = dtype == "bf16" and not option:find("softcap", 1, true)
      for _, room in ipairs(saves and saving or plain) do problems[#problems + 1] = problem .. option .. room end
      if saves and not option:find(":gb_", 1, true) then problems[#problems + 1] = problem .. option .. ":saved_exp:direct:hidden_first" end
    end
    for _, loss in ipairs(losses()) do problems[#problems + 1] = problem .. options[1] .. loss end
    problems[#problems + 1] = problem
  end
  for _, d in ipairs(hidden_sizes or select.common_hidden_sizes) do
    add(("linear_cross_entropy:%s:n4096:d%d:v131072"):format(dtype, d))
    for _, n in ipairs(dtype == "bf16" and backward.rows_of_slabs or {}) do
      problems[#problems + 1] = ("linear_cross_entropy:bf16:n%d:d%d:v131072:gh_bf16:gw_bf16:saved_exp:all_saved"):format(n, d)
    end
    for _, problem in ipairs(dtype == "bf16" and backward.frozen_heads("linear_cross_entropy", d, "direct") or {}) do problems[#problems + 1] = problem end
  end
  return problems
end

return cross_entropy
