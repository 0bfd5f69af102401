-- The problem's canonical string, as runtime/plan/problem.c writes it. KEEP IN STEP: problem string.
local problem = {}

local element_bytes = { bf16 = 2, f16 = 2, f32 = 4 }

-- Optional parts after operator:dtype:n:d:v, each a pattern and what it sets.
local options = {
  { "^(dv)$",              function(p) p.dv = true end },
  { "^hs(%d+)$",           function(p, n) p.hidden_stride = math.tointeger(tonumber(n)) end },
  { "^ws(%d+)$",           function(p, n) p.weight_stride = math.tointeger(tonumber(n)) end },
  { "^align(%d+)$",        function(p, n) p.alignment = math.tointeger(tonumber(n)) end },
  { "^bias_([a-z0-9]+)$",  function(p, dtype) p.bias = dtype end },
  { "^(target_i32)$",      function() end },
  { "^softcap(.+)$",       function(p) p.softcap = true end },
  { "^(argmax)$",          function(p) p.argmax = true end },
  { "^(exact)$",           function(p) p.exact = true end },
  { "^(sm_90a)$",          function() end },
  { "^(portable)$",        function() end },
  { "^(cpu)$",             function() end },
}

local function apply(p, part)
  for _, option in ipairs(options) do
    local value = part:match(option[1])
    if value then
      option[2](p, value)
      return true
    end
  end
  return false
end

function problem.parse(text)
  local head, tail = text:match("^linear_logp(:[a-z0-9]+:n%d+:d%d+:v%d+)(.*)$")
  if not head then return nil, ("problem %q: wanted linear_logp:<dtype>:n<N>:d<D>:v<V>"):format(text) end
  local dtype, n, d, v = head:match("^:([a-z0-9]+):n(%d+):d(%d+):v(%d+)$")
  local p = {
    operator = "linear_logp", dtype = dtype, alignment = 16,
    n = math.tointeger(tonumber(n)), d = math.tointeger(tonumber(d)), v = math.tointeger(tonumber(v)),
  }
  p.element_bytes = element_bytes[dtype]
  if not p.element_bytes then return nil, ("problem %q: dtype %s, wanted bf16, f16 or f32"):format(text, dtype) end
  for part in tail:gmatch(":([^:]*)") do
    if not apply(p, part) then return nil, ("problem %q: unknown part %q"):format(text, part) end
  end
  p.hidden_stride = p.hidden_stride or p.d
  p.weight_stride = p.weight_stride or (p.dv and p.v or p.d)
  return p
end

return problem
