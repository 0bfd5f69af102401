-- Token losses: one definition in Lua gives the loss of a token and its derivatives, as CUDA and as a program for the CPU path.
--
-- A definition is a chunk that returns { inputs = { names }, parameters = { { name, default } }, loss = function(t) ... end }. loss is called
-- once, with t.logp, t.lse, t.entropy, t.uniform and t.class_weight, the inputs and the parameters as expressions, and returns one made of
-- them by + - * / ^ and the functions of gen/expression.lua. In place of loss, expression = "..." is the text of such an expression, or of statements
-- that end in return, in which these stand by their names alone.
local expression = require "gen.expression"

local token_loss = {}

local load, pcall = load, pcall -- load: of source text alone, in the library (runtime/jit/lua_state.h)
local bounded = bounded or pcall -- a pcall that limits instructions and memory, in the library
local format = string.format
local name_pattern, name_length = "^[a-z][a-z0-9_]*$", 31
local keywords = " and break do else elseif end false for function goto if in local nil not or repeat return then true until while "

-- The statistics on which a loss may depend. The differentiable ones come first: the backward takes the loss's derivatives by them as its upstream gradients.
token_loss.statistics = { "logp", "lse", "entropy", "uniform", "class_weight" }
token_loss.differentiable = { "logp", "lse", "entropy", "uniform" }

-- defined: compiled losses by name, for the generator's lifetime. own: the names that users have defined, in order.
local defined = {}
token_loss.own = {}

local function check_name(what, name)
  if type(name) == "string" and #name <= name_length and name:find(name_pattern) then return end
  error(("%s: got %s, wanted letters a to z, digits and _, a letter first, at most %d characters"):format(what, tostring(name), name_length), 0)
end

-- A name that a definition gives to an input or a parameter.
local function check_own_name(what, name)
  check_name(what, name)
  if keywords:find(" " .. name .. " ", 1, true) then error(("%s: got %s, which is a keyword of Lua; wanted another name"):format(what, name), 0) end
end

-- The largest number of INPUTS, PARAMETERS or VALUES, from the header that C and the kernel include, too.
local function limit(of, read_template)
  return tonumber(read_template("templates/params/token_loss.h"):match("FLP_TOKEN_" .. of .. " = (%d+)"))
end

-- Whether the number is finite in fp32, in which GPUs compute the loss.
local most_single = string.unpack("<f", "\xff\xff\x7f\x7f")
local function is_single(value) return math.abs(value) <= most_single end

local function check_inputs(inputs, most)
  if type(inputs) ~= "table" or #inputs > most then error(("inputs: wanted a list of at most %d names"):format(most), 0) end
  for _, name in ipairs(inputs) do check_own_name("inputs", name) end
  return inputs
end

local function check_parameters(list, most)
  if type(list) ~= "table" or #list > most then error(("parameters: wanted a list of at most %d pairs { name, number }"):format(most), 0) end
  local parameters = {}
  for i, pair in ipairs(list) do
    local name, value = table.unpack(type(pair) == "table" and pair or {})
    check_own_name("parameters", name)
    if type(value) ~= "number" or not is_single(value) then
      error(("parameters: %s is %s, wanted a number that is finite in fp32"):format(name, tostring(value)), 0)
    end
    parameters[i] = { name = name, default = value + 0.0 }
  end
  return parameters
end

local articles = { statistic = "a statistic", input = "an input", parameter = "a parameter" }

-- The expressions that a loss is made of, by name, and their names in order.
local function variables_of(graph, inputs, parameters)
  local variables, names = {}, {}
  local function add(what, kind, name)
    if variables[name] then error(format("%s: got %s, which is the name of %s already", what, name, articles[variables[name].kind]), 0) end
    variables[name] = expression.variable(graph, kind, name)
    names[#names + 1] = name
  end
  for _, name in ipairs(token_loss.statistics) do add(nil, "statistic", name) end
  for _, name in ipairs(inputs) do add("inputs", "input", name) end
  for _, parameter in ipairs(parameters) do add("parameters", "parameter", parameter.name) end
  return variables, names
end

-- What loss() gets.
local function argument_of(variables, names)
  return setmetatable({}, {
    __index = function(_, name)
      return variables[name] or error(format("t.%s: there are %s", tostring(name), table.concat(names, ", ")), 0)
    end,
    __newindex = function(_, name) error(format("t.%s: cannot be assigned", tostring(name)), 0) end,
  })
end

-- Calls a definition's code, in which strings have no methods: one call that matches a pattern may take very long, and counts as one instruction.
local strings = getmetatable("")
local methods = strings.__index

local function call_definition(f, ...)
  strings.__index = nil
  local result = f(...)
  strings.__index = methods
  return result
end

-- All that a definition can name: these values, of which wanted says what there is.
local function environment_of(values, wanted)
  return setmetatable({}, {
    __index = function(_, name)
      local value = values(name)
      if value == nil then error(format("%s is not known; wanted %s", tostring(name), wanted), 2) end
      return value
    end,
    __newindex = function(_, name) error(format("global %s: there are no globals to assign", tostring(name)), 0) end,
    __metatable = false,
  })
end

local function_list = table.concat(expression.function_names, ", ")
local environment = environment_of(function(name) return expression.functions[name] end, "a local, a field of the loss' argument, or " .. function_list)

-- ---- a loss that is the text of an expression

local function environment_of_text(variables, names)
  for _, name in ipairs(expression.function_names) do
    local variable = variables[name]
    if variable then error(("%ss: got %s, which is the name of a function already"):format(variable.kind, name), 0) end
  end
  return environment_of(
    function(name) return variables[name] or expression.functions[name] end,
    table.concat(names, ", ") .. ", " .. function_list
  )
end

-- Of a text that is neither an expression nor statements, what is wrong is said of what it looks like.
local function load_text(text, globals)
  local chunk, reason = load("return " .. text, "=expression", "t", globals)
  if chunk then return chunk end
  local statements, other = load(text, "=expression", "t", globals)
  if statements then return statements end
  local code = " " .. text:gsub("%-%-[^\n]*", "") .. " "
  error(code:find("[^%w_]return[^%w_]") and other or reason, 0)
end

local function check_result(what, value, wanted)
  if expression.is_node(value) or type(value) == "number" then return end
  error(("%s a %s, wanted an expression%s"):format(what, type(value), wanted or ""), 0)
end

local function call_text(text, variables, names)
  local chunk = load_text(text, environment_of_text(variables, names))
  local ok, result = pcall(call_definition, chunk)
  strings.__index = methods
  if not ok then
    local reason = tostring(result)
    error(reason:find("^expression:") and reason or "expression: " .. reason, 0)
  end
  check_result("expression: gives", result, "; statements end in `return ...`")
  return result
end

-- ---- a definition

local function check_loss(definition)
  if type(definition) == "table" then
    local of_function, of_text = type(definition.loss) == "function", type(definition.expression) == "string"
    if of_function and definition.expression == nil or of_text and definition.loss == nil then return end
  end
  error("wanted a table with a function `loss` or a text `expression`, and perhaps `inputs` and `parameters`", 0)
end

local function loss_of(definition, graph, variables, names)
  local loss
  if definition.expression then
    loss = call_text(definition.expression, variables, names)
  else
    loss = call_definition(definition.loss, argument_of(variables, names))
    check_result("loss: returned", loss)
  end
  return type(loss) == "number" and expression.constant(graph, loss) or loss
end

-- { name, identity, inputs, parameters, uses = { statistic = true }, nodes, loss, derivatives = { logp = node or nil } }
local function compile(name, definition, read_template)
  check_loss(definition)
  local inputs = check_inputs(definition.inputs or {}, limit("INPUTS", read_template))
  local parameters = check_parameters(definition.parameters or {}, limit("PARAMETERS", read_template))
  local graph = expression.new_graph()
  local variables, names = variables_of(graph, inputs, parameters)
  local loss = loss_of(definition, graph, variables, names)

  local by, results = {}, { loss }
  for i, statistic in ipairs(token_loss.differentiable) do by[i] = variables[statistic] end
  local compiled = { name = name, identity = name, inputs = inputs, parameters = parameters, uses = {}, loss = loss, derivatives = {} }
  local derivatives = expression.differentiate(loss, by)
  for i, statistic in ipairs(token_loss.differentiable) do
    compiled.derivatives[statistic] = derivatives[i]
    results[#results + 1] = derivatives[i] -- nil appends nothing
  end
  compiled.nodes = expression.schedule(graph, results)
  for _, node in ipairs(compiled.nodes) do
    if node.kind == "statistic" then compiled.uses[node.name] = true end
    if node.kind == "constant" and not is_single(node.value) then error(format("the number %s is not finite in fp32", node.value), 0) end
  end
  local most_values = limit("VALUES", read_template)
  if #compiled.nodes > most_values then
    error(("the loss and its derivatives take %d operations, wanted at most %d"):format(#compiled.nodes, most_values), 0)
  end
  return compiled
end

local function evaluate(name, text, read_template)
  local ok, compiled = bounded(function()
    local chunk, reason = load(text, "=" .. name, "t", environment)
    if not chunk then error(reason, 0) end
    return compile(name, call_definition(chunk), read_template)
  end)
  strings.__index = methods
  if ok then return compiled end
  return nil, tostring(compiled)
end

-- FNV-1a: two definitions of one name, in two programs, are told apart.
local function hash(text)
  local value = 0xcbf29ce484222325
  for i = 1, #text do value = (value ~ text:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(value)
end

local function ready_made_text(name, read_template) return read_template(("gen/token_losses/%s.lua"):format(name)) end

-- Defines a loss by this name; true, or nil and what is wrong with it. Defining the same again changes nothing.
function token_loss.define(name, text, read_template)
  local ok, reason = pcall(check_name, "name", name)
  if not ok then return nil, reason end
  local known = defined[name] and defined[name].text or ready_made_text(name, read_template)
  if known == text then return true end
  if known then return nil, ("token loss %s: it is defined already, otherwise"):format(name) end
  local compiled
  compiled, reason = evaluate(name, text, read_template)
  if not compiled then return nil, ("token loss %s: %s"):format(name, reason) end
  compiled.identity = name .. "-" .. hash(text)
  defined[name] = { text = text, compiled = compiled }
  token_loss.own[#token_loss.own + 1] = name
  return true
end

-- The compiled loss of this name, or nil and the reason: there is none.
function token_loss.find(name, read_template)
  if not defined[name] then
    local text = name:find(name_pattern) and ready_made_text(name, read_template)
    if not text then return nil, ("token loss %s: there is none of that name"):format(name) end
    local compiled, reason = evaluate(name, text, read_template)
    if not compiled then error(("token loss %s: %s"):format(name, reason)) end
    defined[name] = { text = text, compiled = compiled }
  end
  return defined[name].compiled
end

-- Takes what problem.parse returns, p or nil and the reason, and returns the same, with the problem's compiled token loss as p.loss.
function token_loss.resolve(read_template, p, reason)
  if not p or not p.token_loss then return p, reason end
  p.loss, reason = token_loss.find(p.token_loss, read_template)
  return p.loss and p, reason
end

-- A loss's part of a kernel's numeric identity. The loss must have been found or defined before.
function token_loss.identity(name) return defined[name] and defined[name].compiled.identity or name end

-- ---- the program for the CPU path: each line is an operation on values of earlier lines (runtime/cpu/token_program.h) ----

local function places_of(nodes)
  local places = {}
  for i, node in ipairs(nodes) do places[node.place] = i - 1 end
  return function(node) return places[expression.plain(node).place] end
end

local function bits(number) return ("%d"):format((string.unpack("<i8", string.pack("<d", number)))) end

local function index_of(list, name)
  for i, entry in ipairs(list) do
    if (type(entry) == "table" and entry.name or entry) == name then return i - 1 end
  end
end

local function operation_line(compiled, node, place_of)
  if node.kind == "constant" then return "constant " .. bits(node.value) end
  if node.kind == "statistic" then return node.name end
  if node.kind == "input" then return "input " .. index_of(compiled.inputs, node.name) end
  if node.kind == "parameter" then return "parameter " .. index_of(compiled.parameters, node.name) end
  local words = { node.kind }
  for _, operand in ipairs(node.operands) do words[#words + 1] = place_of(operand) end
  return table.concat(words, " ")
end

function token_loss.program(name, read_template)
  local compiled, reason = token_loss.find(name, read_template)
  if not compiled then return nil, reason end
  local place_of, lines = places_of(compiled.nodes), {}
  local function add(format, ...) lines[#lines + 1] = format:format(...) end
  add("identity %s", compiled.identity)
  for _, input in ipairs(compiled.inputs) do add("input %s", input) end
  for _, parameter in ipairs(compiled.parameters) do add("parameter %s %s", parameter.name, bits(parameter.default)) end
  for _, node in ipairs(compiled.nodes) do add("value %s", operation_line(compiled, node, place_of)) end
  add("result loss %d", place_of(compiled.loss))
  for _, statistic in ipairs(token_loss.differentiable) do
    if compiled.derivatives[statistic] then add("result %s %d", statistic, place_of(compiled.derivatives[statistic])) end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- ---- CUDA ----

local function float_text(value)
  local whole = math.tointeger(value)
  if whole and whole > -1000000 and whole < 1000000 then return ("%d.0f"):format(whole) end
  return ("__uint_as_float(0x%08xu)"):format((string.unpack("<I4", string.pack("<f", value))))
end

local formats = {
  add = "%s + %s", sub = "%s - %s", mul = "%s * %s", div = "%s / %s", neg = "-%s", exp = "expf(%s)", log = "logf(%s)",
  min = "token_minimum(%s, %s)", max = "token_maximum(%s, %s)", select = "%s < %s ? %s : %s", guard = "%s == 0 ? 0 : %s",
}

local function cuda_value(compiled, node, place_of)
  if node.kind == "constant" then return float_text(node.value) end
  if node.kind == "statistic" then return "row." .. node.name end
  if node.kind == "input" then return ("row.input[%d]"):format(index_of(compiled.inputs, node.name)) end
  if node.kind == "parameter" then return ("parameter[%d]"):format(index_of(compiled.parameters, node.name)) end
  local operands = {}
  for i, operand in ipairs(node.operands) do operands[i] = "v" .. place_of(operand) end
  return formats[node.kind]:format(table.unpack(operands))
end

-- A struct TokenLoss for templates/any/token_loss.cuh.
function token_loss.cuda(name, read_template)
  local compiled, reason = token_loss.find(name, read_template)
  if not compiled then return nil, reason end
  local place_of = places_of(compiled.nodes)
  local lines = {
    "// The token loss " .. name .. " and its derivatives.",
    "struct TokenLoss {",
    ("    static constexpr int inputs = %d;"):format(#compiled.inputs),
    ("    static constexpr bool uses_entropy = %s, uses_uniform = %s;"):format(compiled.uses.entropy or false, compiled.uses.uniform or false),
    "    __device__ __forceinline__ static TokenLossResult evaluate(const TokenLossRow &row, const float *parameter) {",
  }
  for i, node in ipairs(compiled.nodes) do
    lines[#lines + 1] = ("        float v%d = %s;"):format(i - 1, cuda_value(compiled, node, place_of))
  end
  local results = { "v" .. place_of(compiled.loss) }
  for _, statistic in ipairs(token_loss.differentiable) do
    local derivative = compiled.derivatives[statistic]
    results[#results + 1] = derivative and "v" .. place_of(derivative) or "0"
  end
  lines[#lines + 1] = ("        return {%s};"):format(table.concat(results, ", "))
  lines[#lines + 1] = "    }"
  lines[#lines + 1] = "};"
  return table.concat(lines, "\n") .. "\n"
end

return token_loss
