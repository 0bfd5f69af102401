-- The problem's canonical string, as runtime/plan/problem.c writes it. KEEP IN STEP: problem string.
local problem = {}

local element_bytes = { bf16 = 2, f16 = 2, f32 = 4 }

local function yes() return true end

-- A positive int64, or nil.
local function positive(digits)
  local number = math.tointeger(tonumber(digits))
  return number and number > 0 and number or nil
end

local function float_dtype(name) return element_bytes[name] and name end

-- Optional parts after operator:dtype:n:d:v: a pattern, the field that it sets (nil: no kernel depends on it), and the field's value.
local options = {
  { "^dv$",               "dv",            yes },
  { "^hs(%d+)$",          "hidden_stride", positive },
  { "^ws(%d+)$",          "weight_stride", positive },
  { "^align(%d+)$",       "alignment",     positive },
  { "^bias_([a-z0-9]+)$", "bias",          float_dtype },
  { "^target_i32$",       nil,             yes },
  { "^softcap(.+)$",      "softcap",       yes },
  { "^argmax$",           "argmax",        yes },
  { "^exact$",            "exact",         yes },
  { "^sm_90a$",           nil,             yes },
  { "^portable$",         nil,             yes },
  { "^cpu$",              nil,             yes },
}

local function apply(p, part)
  for _, option in ipairs(options) do
    local text = part:match(option[1])
    if text then
      local value = option[3](text)
      if value and option[2] then p[option[2]] = value end
      return value
    end
  end
end

function problem.parse(text)
  local head, tail = text:match("^linear_logp(:[a-z0-9]+:n%d+:d%d+:v%d+)(.*)$")
  if not head then return nil, ("problem %q: wanted linear_logp:<dtype>:n<N>:d<D>:v<V>"):format(text) end
  local dtype, n, d, v = head:match("^:([a-z0-9]+):n(%d+):d(%d+):v(%d+)$")
  local p = {
    operator = "linear_logp", dtype = dtype, alignment = 16,
    n = n:find("^0+$") and 0 or positive(n), d = positive(d), v = positive(v),
  }
  p.element_bytes = element_bytes[dtype]
  if not p.element_bytes then return nil, ("problem %q: dtype %s, wanted bf16, f16 or f32"):format(text, dtype) end
  if not (p.n and p.d and p.v) then return nil, ("problem %q: wanted sizes n >= 0, d >= 1 and v >= 1 below 2^63"):format(text) end
  if tail:find("^[^:]") then return nil, ("problem %q: unknown part %q"):format(text, tail) end
  for part in tail:gmatch(":([^:]*)") do
    if not apply(p, part) then return nil, ("problem %q: unknown part %q"):format(text, part) end
  end
  p.hidden_stride = p.hidden_stride or p.d
  p.weight_stride = p.weight_stride or (p.dv and p.v or p.d)
  return p
end

return problem
