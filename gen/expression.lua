-- Expressions with automatic differentiation (reverse mode), in which token losses are written. Numbers and expressions mix freely.
--
-- Equal expressions are one node, so that common subexpressions are computed once. node.place is the node's number in the order in which nodes were made, so
-- its operands have smaller ones.
local expression = {}

local format = string.format -- definitions call this file, and meanwhile strings have no methods (gen/token_loss.lua)

local node_type = {}
local operand_counts = { add = 2, sub = 2, mul = 2, div = 2, neg = 1, exp = 1, log = 1, min = 2, max = 2, select = 4, guard = 2 }

-- A set of nodes: those of one token loss.
function expression.new_graph() return { nodes = {}, known = {} } end

local function make(graph, kind, operands, name)
  local key = { kind, name or "" }
  for _, operand in ipairs(operands) do key[#key + 1] = tostring(operand.place) end
  local text = table.concat(key, " ")
  if not graph.known[text] then
    local node = setmetatable({ graph = graph, kind = kind, place = #graph.nodes + 1, name = name, operands = operands }, node_type)
    graph.nodes[node.place], graph.known[text] = node, node
  end
  return graph.known[text]
end

-- A statistic, an input or a parameter.
function expression.variable(graph, kind, name) return make(graph, kind, {}, name) end

function expression.constant(graph, value)
  if value ~= value or value == math.huge or value == -math.huge then error(format("the number %s is not finite", value), 0) end
  local node = make(graph, "constant", {}, format("%d", (string.unpack("<i8", string.pack("<d", value)))))
  node.value = value + 0.0
  return node
end

local function is_node(value) return getmetatable(value) == node_type end

local function graph_of(values)
  for _, value in ipairs(values) do
    if is_node(value) then return value.graph end
  end
end

-- The functions that a token loss is written with, and their names in order.
local functions, function_names = {}, {}

local function refuse_operand(value)
  local got = "a " .. type(value)
  for _, name in ipairs(function_names) do
    if functions[name] == value then got = "the function " .. name end
  end
  error(format("got %s, wanted a number or an expression", got), 0)
end

local function coerce(graph, value)
  if is_node(value) then return value end
  if type(value) == "number" then return expression.constant(graph, value) end
  refuse_operand(value)
end

local fold = {
  add = function(a, b) return a + b end,
  sub = function(a, b) return a - b end,
  mul = function(a, b) return a * b end,
  div = function(a, b) return a / b end,
  neg = function(a) return -a end,
  exp = math.exp,
  log = math.log,
  min = math.min,
  max = math.max,
  select = function(a, b, x, y) return a < b and x or y end,
  guard = function(adjoint, x) return adjoint == 0 and 0 or x end,
}

local build

-- What an operation simplifies to, such as x + 0 to x; nil if it does not.
local simplify = {
  add = function(_, a, b) return a.value == 0 and b or b.value == 0 and a or nil end,
  sub = function(graph, a, b) return b.value == 0 and a or a.value == 0 and build(graph, "neg", b) or nil end,
  mul = function(graph, a, b)
    if a.value == 0 or b.value == 1 then return a end
    if b.value == 0 or a.value == 1 then return b end
    return a.value == -1 and build(graph, "neg", b) or b.value == -1 and build(graph, "neg", a) or nil
  end,
  div = function(_, a, b) return (a.value == 0 or b.value == 1) and a or nil end,
  neg = function(_, a) return a.kind == "neg" and a.operands[1] or nil end,
  select = function(_, _, _, x, y) return x == y and x or nil end,
  guard = function(_, adjoint, x) return adjoint.value and (adjoint.value == 0 and adjoint or x) or x.value and x or nil end,
}

local function all_constant(operands)
  for _, operand in ipairs(operands) do
    if not operand.value then return false end
  end
  return true
end

function build(graph, kind, ...)
  local operands, values = { ... }, {}
  for i, operand in ipairs(operands) do
    operands[i] = coerce(graph, operand)
    values[i] = operands[i].value
  end
  if all_constant(operands) then return expression.constant(graph, fold[kind](table.unpack(values))) end
  return simplify[kind] and simplify[kind](graph, table.unpack(operands)) or make(graph, kind, operands)
end

-- An expression of numbers alone is a number.
local function operation(kind)
  return function(...)
    local values = { ... }
    if #values < operand_counts[kind] then
      error(format("%s: got %d values, wanted %d", kind, #values, operand_counts[kind]), 0)
    end
    local graph = graph_of(values)
    if graph then return build(graph, kind, table.unpack(values, 1, operand_counts[kind])) end
    for _, value in ipairs(values) do
      if type(value) ~= "number" then refuse_operand(value) end
    end
    return fold[kind](table.unpack(values))
  end
end

node_type.__add, node_type.__sub, node_type.__mul, node_type.__div = operation "add", operation "sub", operation "mul", operation "div"
node_type.__unm = function(a) return build(a.graph, "neg", a) end
node_type.__pow = function(base, exponent)
  if math.type(exponent) ~= "integer" or exponent < 1 or exponent > 8 then error("x ^ n: wanted a whole number n of 1 .. 8", 0) end
  local power = base
  for _ = 2, exponent do power = power * base end
  return power
end
node_type.__lt = function() error("a < b of expressions: wanted where(less(a, b), x, y)", 0) end
node_type.__le = node_type.__lt

-- ---- the functions that a token loss is written with ----

local comparison = {}

local function provide(name, f)
  functions[name] = f
  function_names[#function_names + 1] = name
end

provide("exp", operation "exp")
provide("log", operation "log")
provide("min", operation "min")
provide("max", operation "max")
provide("abs", function(x) return functions.max(x, -x) end)
provide("clamp", function(x, low, high) return functions.min(functions.max(x, low), high) end)
-- x where the condition holds, else y.
provide("where", function(condition, x, y)
  if getmetatable(condition) ~= comparison then error("where: got no less(a, b) for its condition", 0) end
  return operation "select" (condition[1], condition[2], x, y)
end)
provide("less", function(a, b) return setmetatable({ a, b }, comparison) end)
-- x as a constant: its derivative is 0.
provide("detach", function(x) return is_node(x) and make(x.graph, "detach", { x }) or x end)

expression.functions, expression.function_names = functions, function_names

-- ---- derivatives ----

-- A contribution to a derivative: `value`, which has `adjoint` as a factor, but 0 where the adjoint is 0. It is 0 for a branch that is not taken, whose values
-- may be infinite, and 0 times infinity is NaN.
local function through(adjoint, value) return is_node(adjoint) and build(adjoint.graph, "guard", adjoint, value) or value end

-- By kind of node. adjoint: the derivative of the result by node n. give(operand, d): adds d to the derivative by the operand.
local rules = {
  add = function(n, adjoint, give) give(n.operands[1], adjoint); give(n.operands[2], adjoint) end,
  sub = function(n, adjoint, give) give(n.operands[1], adjoint); give(n.operands[2], -adjoint) end,
  mul = function(n, adjoint, give)
    give(n.operands[1], through(adjoint, adjoint * n.operands[2]))
    give(n.operands[2], through(adjoint, adjoint * n.operands[1]))
  end,
  div = function(n, adjoint, give)
    give(n.operands[1], through(adjoint, adjoint / n.operands[2]))
    give(n.operands[2], through(adjoint, -(adjoint * n) / n.operands[2]))
  end,
  neg = function(n, adjoint, give) give(n.operands[1], -adjoint) end,
  exp = function(n, adjoint, give) give(n.operands[1], through(adjoint, adjoint * n)) end,
  log = function(n, adjoint, give) give(n.operands[1], through(adjoint, adjoint / n.operands[1])) end,
  -- If both are equal, the derivative goes to the first.
  min = function(n, adjoint, give)
    local a, b = n.operands[1], n.operands[2]
    give(a, build(n.graph, "select", b, a, 0, adjoint))
    give(b, build(n.graph, "select", b, a, adjoint, 0))
  end,
  max = function(n, adjoint, give)
    local a, b = n.operands[1], n.operands[2]
    give(a, build(n.graph, "select", a, b, 0, adjoint))
    give(b, build(n.graph, "select", a, b, adjoint, 0))
  end,
  select = function(n, adjoint, give)
    local a, b = n.operands[1], n.operands[2]
    give(n.operands[3], build(n.graph, "select", a, b, adjoint, 0))
    give(n.operands[4], build(n.graph, "select", a, b, 0, adjoint))
  end,
}

-- By place: whether a node depends on one of the variables other than through detach, so that its adjoint is needed.
local function depending(graph, variables, count)
  local depends = {}
  for _, variable in ipairs(variables) do depends[variable.place] = true end
  for place = 1, count do
    local node = graph.nodes[place]
    for _, operand in ipairs(rules[node.kind] and node.operands or {}) do depends[place] = depends[place] or depends[operand.place] end
  end
  return depends
end

-- The derivatives of a node by each of the variables: nodes, or nil where they are 0.
function expression.differentiate(result, variables)
  local graph, count, adjoints = result.graph, result.place, {}
  local depends = depending(graph, variables, count)
  adjoints[count] = expression.constant(graph, 1)
  for place = count, 1, -1 do
    local node, adjoint = graph.nodes[place], adjoints[place]
    if adjoint and depends[place] and rules[node.kind] then
      rules[node.kind](node, adjoint, function(operand, more)
        local sum = adjoints[operand.place]
        if depends[operand.place] then adjoints[operand.place] = sum and sum + more or coerce(graph, more) end
      end)
    end
  end
  local derivatives = {}
  for i, variable in ipairs(variables) do
    local adjoint = depends[count] and adjoints[variable.place]
    derivatives[i] = adjoint and adjoint.value ~= 0 and adjoint or nil
  end
  return derivatives
end

-- The nodes that the results need, operands first. detach nodes are left out: expression.plain gives the node that is used in place of one.
function expression.schedule(graph, results)
  local needed, list = {}, {}
  local function need(node)
    if needed[node.place] then return end
    needed[node.place] = true
    for _, operand in ipairs(node.operands) do need(operand) end
  end
  for _, result in ipairs(results) do need(result) end
  for _, node in ipairs(graph.nodes) do
    if needed[node.place] and node.kind ~= "detach" then list[#list + 1] = node end
  end
  return list
end

function expression.plain(node)
  while node.kind == "detach" do node = node.operands[1] end
  return node
end

expression.is_node = is_node

return expression
