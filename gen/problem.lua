-- Parses a problem's canonical string, as runtime/core/problem_text.c writes it, to a table p of the fields that kernels may depend on.
--
-- Sizes are p.n, p.d and p.v. A word of the string becomes p.word = true, and any other field p.name. Strides, pointer_alignment and dtypes that the string
-- leaves out have their defaults.
local cxx = require "gen.cxx"
local tables = require "gen.problem_fields"

local problem = {}

-- The words that plans append to the string (flp_operator.hint), about a backward:
--   saved_exp     the forward leaves saved exponentials
--   all_saved     they are those of the whole vocabulary; so they are with direct and in_forward
--   direct        grad_hidden is one product over the whole vocabulary
--   in_forward    grad_hidden's product is computed in the forward's call
--   parts4        grad_hidden's product is one of so many parts of the vocabulary, which are then added
--   narrow        grad_hidden's product has narrow tiles; with parts, of more than 1024 rows
--   hidden_first  grad_hidden's product comes before grad_weight's
local hints = { "saved_exp", "all_saved", "direct", "in_forward", "narrow", "hidden_first" }

-- The operators' names, in the order in which prebuilds list them.
problem.operators = {}

local operators = {}
for i, fields in ipairs(tables) do operators[fields.operator], problem.operators[i] = fields, fields.operator end

-- A positive int64, or nil.
local function positive(digits)
  local number = digits:find("^%d+$") and math.tointeger(tonumber(digits))
  return number and number > 0 and number or nil
end

-- By a field's kind: the value of the text after the prefix, or nil. Kernels depend on whether there is a `number` (a softcap), not on which.
local readers = {
  count = positive, stride = positive, alignment = positive,
  dtype = function(text) return cxx.bytes[text] and text end,
  number = function() return true end,
  name = function(text) return text:match("^[a-z0-9_]+$") end,
}

local function read(field, p, part)
  local text = readers[field.kind] and part:match("^" .. field.prefix .. "(.+)$")
  local value = text and readers[field.kind](text)
  if value then p[field.name] = value end
  return value
end

local function apply(fields, p, part)
  for _, words in ipairs { fields.words, hints } do
    for _, word in ipairs(words) do
      if part == word then
        p[word] = true
        return true
      end
    end
  end
  for _, field in ipairs(fields) do
    if read(field, p, part) then return true end
  end
  return read({ kind = "count", prefix = "parts", name = "parts" }, p, part)
end

-- Fills in what the string leaves out.
local function complete(fields, p)
  for _, field in ipairs(fields) do
    if field.kind == "stride" then
      p[field.name] = p[field.name] or field.like and p[field.like] or p[p[field.transposed] and field.rows or field.columns]
    elseif field.default then
      p[field.name] = p[field.name] or p[field.default] or field.default
    end
  end
  if p.operator == "linear_cross_entropy" then p.token_loss = p.token_loss or (p.smoothing and "smoothed_cross_entropy" or "cross_entropy") end
end

local function sizes_of(fields)
  local sizes = {}
  for _, field in ipairs(fields) do
    if field.kind == "size" then sizes[#sizes + 1] = field end
  end
  return sizes
end

local function split(text)
  local parts = {}
  for part in (text .. ":"):gmatch("([^:]*):") do parts[#parts + 1] = part end
  return parts
end

local function head_of(name, sizes)
  local head = { name, "<dtype>" }
  for _, size in ipairs(sizes) do head[#head + 1] = ("%s<%s>"):format(size.prefix, size.prefix:upper()) end
  return table.concat(head, ":")
end

local function parse_head(parts, sizes)
  local p = { operator = parts[1], dtype = parts[2], element_bytes = cxx.bytes[parts[2]] }
  for i, size in ipairs(sizes) do
    local digits = (parts[i + 2] or ""):match("^" .. size.prefix .. "(%d+)$")
    if not digits then return nil, "wanted " .. head_of(parts[1], sizes) end
    p[size.prefix] = size.low == 0 and digits:find("^0+$") and 0 or positive(digits)
    if not p[size.prefix] then return nil, ("%s: wanted a size from %d below 2^63"):format(parts[i + 2], size.low) end
  end
  if not p.element_bytes then return nil, ("dtype %s, wanted %s"):format(p.dtype, cxx.wanted) end
  return p
end

function problem.parse(text)
  local parts = split(text)
  local fields = operators[parts[1]]
  if not fields then return nil, ("problem %q: unknown operator %q, known are %s"):format(text, parts[1], table.concat(problem.operators, ", ")) end
  local sizes = sizes_of(fields)
  local p, reason = parse_head(parts, sizes)
  if not p then return nil, ("problem %q: %s"):format(text, reason) end
  for i = #sizes + 3, #parts do
    if not apply(fields, p, parts[i]) then return nil, ("problem %q: unknown part %q"):format(text, parts[i]) end
  end
  complete(fields, p)
  if p.v == 0 and not p.vocab_total then return nil, ("problem %q: v0 is for shards of a vocabulary"):format(text) end
  return p
end

return problem
