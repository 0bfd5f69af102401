-- linear_cross_entropy: from a problem and a device to variants. Kernels, in this order: linear_logp's two, the loss, and with gradients
-- linear_logp_backward's. KEEP IN STEP: cross-entropy kernels (runtime/plan/linear_cross_entropy_plan.c).
local backward = require "gen.select.linear_logp_backward"
local linear_logp = require "gen.select.linear_logp"
local token_loss = require "gen.token_loss"
local variant = require "gen.variant"

local cross_entropy = {}

-- p with what one of the passes is asked for.
local function pass(p, changes)
  return setmetatable(changes, { __index = p })
end

-- path: the name of both modules' function.
local function choose(p, capability, path)
  local loss, has_gradients = p.loss, p.grad_hidden or p.grad_weight or p.grad_bias
  local asked = { entropy = p.entropy or loss.uses.entropy or false, logit_sum = loss.uses.uniform }
  local forward, reason
  if has_gradients then forward, reason = backward.compact_forward(p, capability, path, asked)
  else forward, reason = linear_logp[path](pass(p, asked), capability) end
  if not forward then return nil, reason end
  local kernels = { table.unpack(forward.kernels) }
  local arch_name = kernels[1]:match("[^.]*$")
  kernels[#kernels + 1] = variant.format { operator = "token_loss", loss = p.token_loss, arch = arch_name }
  if has_gradients then
    local gradients
    asked = pass(p, { g_entropy = loss.derivatives.entropy ~= nil, entropy = false, logit_sum = loss.derivatives.uniform ~= nil })
    gradients, reason = backward[path](asked, capability)
    if not gradients then return nil, reason end
    for _, kernel in ipairs(gradients.kernels) do kernels[#kernels + 1] = kernel end
  end
  return { path = forward.path, kernels = kernels }
end

function cross_entropy.hopper(p, capability) return choose(p, capability, "hopper") end
function cross_entropy.portable(p, capability) return choose(p, capability, "portable") end

-- Problems whose kernels a prebuild makes: those of training, which is not in fp32, with each loss that is defined. hidden_sizes: nil for the
-- common ones.
function cross_entropy.prebuilt(dtype, hidden_sizes)
  local problems = {}
  if dtype == "f32" then return problems end
  for _, d in ipairs(hidden_sizes or { 2048, 4096 }) do
    local problem = ("linear_cross_entropy:%s:n4096:d%d:v131072:gh_%s:gw_%s"):format(dtype, d, dtype, dtype)
    problems[#problems + 1] = problem
    if dtype == "bf16" then problems[#problems + 1] = problem .. ":stash:direct" end -- with room for a stash
    for _, name in ipairs(token_loss.own) do problems[#problems + 1] = problem .. ":loss_" .. name end
  end
  return problems
end

return cross_entropy
