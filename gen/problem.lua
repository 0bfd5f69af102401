-- The problem's canonical string, as runtime/plan/problem_text.c writes it. KEEP IN STEP: problem string.
local problem = {}

local element_bytes = { bf16 = 2, f16 = 2, f32 = 4 }

local function yes() return true end
local function itself(text) return text end

-- A positive int64, or nil.
local function positive(digits)
  local number = math.tointeger(tonumber(digits))
  return number and number > 0 and number or nil
end

local function float_dtype(name) return element_bytes[name] and name end

-- Optional parts: a pattern, the field that it sets (nil: no kernel depends on it), and the field's value.
local alignment = { "^align(%d+)$", "alignment", positive }
local target = { "^target_i32$", nil, yes }
local softcap = { "^softcap(.+)$", "softcap", yes }
local argmax = { "^argmax$", "argmax", yes }
local entropy = { "^entropy$", "entropy", yes }
local sm_90a, portable, cpu = { "^sm_90a$", nil, yes }, { "^portable$", nil, yes }, { "^cpu$", nil, yes }

-- Of linear_logp in both directions.
local dv, exact = { "^dv$", "dv", yes }, { "^exact$", "exact", yes }
local hidden_stride, weight_stride = { "^hs(%d+)$", "hidden_stride", positive }, { "^ws(%d+)$", "weight_stride", positive }
local bias = { "^bias_([a-z0-9]+)$", "bias", float_dtype }

-- Hints of plans: the forward leaves a stash, of the whole vocabulary, and grad_hidden is one product.
local stash, direct = { "^stash$", "stash", yes }, { "^direct$", "direct", yes }

local filter = { "^filter(.+)$", "filter", yes }

local function complete_linear_logp(p)
  p.hidden_stride = p.hidden_stride or p.d
  p.weight_stride = p.weight_stride or (p.dv and p.v or p.d)
end

-- Of each operator: the prefixes of its sizes, n first, which alone may be 0; its options; what to fill in where options left it out.
local operators = {
  linear_logp = {
    sizes = { "n", "d", "v" },
    options = { dv, hidden_stride, weight_stride, alignment, bias, target, softcap, argmax, entropy, exact, sm_90a, portable, cpu },
    complete = complete_linear_logp,
  },
  linear_logp_backward = {
    sizes = { "n", "d", "v" },
    options = {
      dv, hidden_stride, weight_stride, alignment, bias, target, softcap, exact,
      { "^gh_([a-z0-9]+)$", "grad_hidden",        float_dtype },
      { "^gw_([a-z0-9]+)$", "grad_weight",        float_dtype },
      { "^gb_([a-z0-9]+)$", "grad_bias",          float_dtype },
      { "^ghs(%d+)$",       "grad_hidden_stride", positive },
      { "^gws(%d+)$",       "grad_weight_stride", positive },
      { "^acc_hidden$",     "acc_hidden",         yes },
      { "^acc_weight$",     "acc_weight",         yes },
      { "^acc_bias$",       "acc_bias",           yes },
      { "^g_lse$",          "g_lse",              yes },
      { "^g_entropy$",      "g_entropy",          yes },
      { "^budget(%d+)$",    "memory_budget",      positive },
      filter,
      { "^forward$",        "forward",            yes },
      stash, direct, sm_90a, portable, cpu,
    },
    complete = function(p)
      complete_linear_logp(p)
      p.grad_hidden_stride = p.grad_hidden_stride or p.hidden_stride
      p.grad_weight_stride = p.grad_weight_stride or p.weight_stride
    end,
  },
  linear_cross_entropy = {
    sizes = { "n", "d", "v" },
    options = {
      dv, hidden_stride, weight_stride, alignment, bias, target, softcap, entropy, exact,
      { "^gh_([a-z0-9]+)$",      "grad_hidden",        float_dtype },
      { "^gw_([a-z0-9]+)$",      "grad_weight",        float_dtype },
      { "^gb_([a-z0-9]+)$",      "grad_bias",          float_dtype },
      { "^ghs(%d+)$",            "grad_hidden_stride", positive },
      { "^gws(%d+)$",            "grad_weight_stride", positive },
      { "^acc_hidden$",          "acc_hidden",         yes },
      { "^acc_weight$",          "acc_weight",         yes },
      { "^acc_bias$",            "acc_bias",           yes },
      { "^budget(%d+)$",         "memory_budget",      positive },
      filter,
      { "^sum$",                 nil,                  yes },
      { "^none$",                nil,                  yes },
      { "^smoothing$",           "smoothing",          yes },
      { "^classes_([a-z0-9]+)$", "classes",            float_dtype },
      { "^tokens$",              nil,                  yes },
      { "^loss_([a-z0-9_]+)$",   "token_loss",         itself },
      stash, direct, sm_90a, portable, cpu,
    },
    complete = function(p)
      complete_linear_logp(p)
      p.grad_hidden_stride = p.grad_hidden_stride or p.hidden_stride
      p.grad_weight_stride = p.grad_weight_stride or p.weight_stride
      p.token_loss = p.token_loss or (p.smoothing and "smoothed_cross_entropy" or "cross_entropy")
    end,
  },
  logits_logp = {
    sizes = { "n", "v" },
    options = { { "^ls(%d+)$", "logits_stride", positive }, alignment, target, softcap, argmax, entropy, sm_90a, portable, cpu },
    complete = function(p) p.logits_stride = p.logits_stride or p.v end,
  },
  logits_logp_backward = {
    sizes = { "n", "v" },
    options = {
      { "^ls(%d+)$", "logits_stride", positive }, { "^gs(%d+)$", "grad_stride", positive }, alignment, target, softcap, entropy,
      { "^fused$", "fused", yes }, sm_90a, portable, cpu,
    },
    complete = function(p)
      p.logits_stride = p.logits_stride or p.v
      p.grad_stride = p.grad_stride or p.v
    end,
  },
  weighted_sum = {
    sizes = { "n", "d" },
    options = {
      { "^xs(%d+)$",       "x_stride", positive },
      alignment,
      { "^w_([a-z0-9]+)$", "weight",   float_dtype },
      { "^y_([a-z0-9]+)$", "y",        float_dtype },
      sm_90a, portable, cpu,
    },
    complete = function(p)
      p.x_stride, p.weight, p.y = p.x_stride or p.d, p.weight or p.dtype, p.y or p.dtype
    end,
  },
  weighted_sum_backward = {
    sizes = { "n", "d" },
    options = {
      { "^xs(%d+)$",        "x_stride",      positive },
      alignment,
      { "^w_([a-z0-9]+)$",  "weight",        float_dtype },
      { "^y_([a-z0-9]+)$",  "g",             float_dtype },
      { "^gx_([a-z0-9]+)$", "grad_x",        float_dtype },
      { "^gw_([a-z0-9]+)$", "grad_w",        float_dtype },
      { "^gxs(%d+)$",       "grad_x_stride", positive },
      { "^accumulate$",     nil,             yes },
      sm_90a, portable, cpu,
    },
    complete = function(p)
      p.x_stride, p.weight, p.g = p.x_stride or p.d, p.weight or p.dtype, p.g or p.dtype
      p.grad_x_stride = p.grad_x_stride or p.x_stride
    end,
  },
}
local names = { "linear_logp", "linear_logp_backward", "linear_cross_entropy", "logits_logp", "logits_logp_backward", "weighted_sum", "weighted_sum_backward" }

local function apply(options, p, part)
  for _, option in ipairs(options) do
    local text = part:match(option[1])
    if text then
      local value = option[3](text)
      if value and option[2] then p[option[2]] = value end
      return value
    end
  end
end

local function split(text)
  local parts = {}
  for part in (text .. ":"):gmatch("([^:]*):") do parts[#parts + 1] = part end
  return parts
end

local function head_of(name, operator)
  local head = { name, "<dtype>" }
  for _, size in ipairs(operator.sizes) do head[#head + 1] = ("%s<%s>"):format(size, size:upper()) end
  return table.concat(head, ":")
end

local function parse_head(parts, operator)
  local p = { operator = parts[1], dtype = parts[2], alignment = 16, element_bytes = element_bytes[parts[2]] }
  for i, size in ipairs(operator.sizes) do
    local digits = (parts[i + 2] or ""):match("^" .. size .. "(%d+)$")
    if not digits then return nil, "wanted " .. head_of(parts[1], operator) end
    p[size] = i == 1 and digits:find("^0+$") and 0 or positive(digits)
    if not p[size] then return nil, ("%s: wanted a size %s below 2^63"):format(parts[i + 2], i == 1 and "from 0" or "from 1") end
  end
  if not p.element_bytes then return nil, ("dtype %s, wanted bf16, f16 or f32"):format(p.dtype) end
  return p
end

function problem.parse(text)
  local parts = split(text)
  local operator = operators[parts[1]]
  if not operator then return nil, ("problem %q: unknown operator %q, known are %s"):format(text, parts[1], table.concat(names, ", ")) end
  local p, reason = parse_head(parts, operator)
  if not p then return nil, ("problem %q: %s"):format(text, reason) end
  for i = #operator.sizes + 3, #parts do
    if not apply(operator.options, p, parts[i]) then return nil, ("problem %q: unknown part %q"):format(text, parts[i]) end
  end
  operator.complete(p)
  return p
end

return problem
