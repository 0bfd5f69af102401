-- gen/token_loss.lua and gen/expression.lua: one definition gives a loss and its derivatives.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"

TestTokenLoss = {}

function TestTokenLoss:setUp() self.generator = support.fresh_generator() end

local function define(self, name, loss, inputs, parameters)
  local text = ("return { inputs = { %s }, parameters = { %s }, loss = function(t) return %s end }"):format(inputs or "", parameters or "", loss)
  return self.generator.define_token_loss(name, text, support.read_template)
end

local operations = {
  add = function(a, b) return a + b end, sub = function(a, b) return a - b end, mul = function(a, b) return a * b end,
  div = function(a, b) return a / b end, neg = function(a) return -a end, exp = math.exp, log = math.log, min = math.min, max = math.max,
  select = function(a, b, x, y) return a < b and x or y end, guard = function(adjoint, x) return adjoint == 0 and 0 or x end,
}

-- Runs a program for the CPU path. values: statistics, inputs and parameters by name.
local function run(program, values)
  local inputs, parameters, computed, results = {}, {}, {}, {}
  for line in program:gmatch("[^\n]+") do
    local words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word end
    local kind, operands = words[2], {}
    for i = 3, #words do operands[#operands + 1] = words[1] == "value" and computed[tonumber(words[i]) + 1] end
    if words[1] == "input" then inputs[#inputs + 1] = values[words[2]]
    elseif words[1] == "parameter" then parameters[#parameters + 1] = values[words[2]] or (string.unpack("<d", string.pack("<i8", words[3])))
    elseif words[1] == "result" then results[words[2]] = computed[tonumber(words[3]) + 1]
    elseif kind == "constant" then computed[#computed + 1] = (string.unpack("<d", string.pack("<i8", words[3])))
    elseif kind == "input" then computed[#computed + 1] = inputs[tonumber(words[3]) + 1]
    elseif kind == "parameter" then computed[#computed + 1] = parameters[tonumber(words[3]) + 1]
    else computed[#computed + 1] = operations[kind] and operations[kind](table.unpack(operands)) or values[kind] end
  end
  return results
end

local statistics = { "logp", "lse", "entropy", "uniform" }

-- Compares the program's derivatives with central differences of its loss.
local function check_derivatives(self, name, values)
  local program = assert(self.generator.token_loss(name, support.read_template))
  local results, step = run(program, values), 1e-6
  for _, statistic in ipairs(statistics) do
    local up = run(program, support.with(values, { [statistic] = values[statistic] + step })).loss
    local down = run(program, support.with(values, { [statistic] = values[statistic] - step })).loss
    luaunit.assertAlmostEquals(results[statistic] or 0, (up - down) / (2 * step), 1e-7, name .. " by " .. statistic)
  end
  return results.loss
end

local point = {
  logp = -1.25, lse = 3.5, entropy = 1.75, uniform = 2.25, class_weight = 0.5, advantages = 1.5, old_logp = -1.3, reference_logp = -1.1,
  clip_low = 0.2, clip_high = 0.2, kl_scale = 0.05, lse_square_scale = 0.01, label_smoothing = 0.1,
}

function TestTokenLoss:test_the_ready_made_losses_are_their_formulas()
  local ratio, difference = math.exp(0.05), 0.15
  local cases = {
    { "cross_entropy", 0.5 * 1.25 + 0.01 * 3.5 ^ 2 },
    { "smoothed_cross_entropy", 0.9 * 0.5 * 1.25 + 0.1 * 2.25 + 0.01 * 3.5 ^ 2 },
    { "policy_gradient", -ratio * 1.5 },
    { "policy_gradient_kl", -ratio * 1.5 + 0.05 * (math.exp(difference) - difference - 1) },
  }
  for _, case in ipairs(cases) do luaunit.assertAlmostEquals(check_derivatives(self, case[1], point), case[2], 1e-12, case[1]) end
end

-- Beyond the clip's bounds the loss is constant where that limits the gain, and only there.
function TestTokenLoss:test_the_ratio_is_clipped_where_it_would_gain()
  local program = self.generator.token_loss("policy_gradient", support.read_template)
  local function slope(logp, advantage) return run(program, support.with(point, { logp = logp, advantages = advantage })).logp end
  luaunit.assertEquals(slope(-0.8, 1), 0)
  luaunit.assertEquals(slope(-1.8, -1), 0)
  luaunit.assertAlmostEquals(slope(-0.8, -1), math.exp(0.5), 1e-12)
  luaunit.assertAlmostEquals(slope(-1.8, 1), -math.exp(-0.5), 1e-12)
end

-- The ratio is infinite here, and the derivative of the branch that is not taken would be NaN.
function TestTokenLoss:test_a_branch_not_taken_gives_nothing_however_large()
  for _, name in ipairs { "policy_gradient", "policy_gradient_kl" } do
    local program = self.generator.token_loss(name, support.read_template)
    local kl = name == "policy_gradient_kl" and 0.05 * (1 - math.exp(-1.1 + 0.5)) or 0
    local results = run(program, support.with(point, { logp = -0.5, old_logp = -1000, advantages = 2 }))
    luaunit.assertAlmostEquals(results.logp, kl, 1e-12)
  end
end

function TestTokenLoss:test_without_smoothing_the_uniform_part_may_be_infinite()
  local program = self.generator.token_loss("smoothed_cross_entropy", support.read_template)
  local results = run(program, support.with(point, { label_smoothing = 0, uniform = math.huge }))
  luaunit.assertAlmostEquals(results.loss, 0.5 * 1.25 + 0.01 * 3.5 ^ 2, 1e-12)
  luaunit.assertEquals(results.uniform, 0)
end

-- lse^2 is infinite here.
function TestTokenLoss:test_without_a_z_loss_the_logits_may_be_of_any_size()
  for _, name in ipairs { "cross_entropy", "smoothed_cross_entropy" } do
    local program = self.generator.token_loss(name, support.read_template)
    local results = run(program, support.with(point, { label_smoothing = 0, lse_square_scale = 0, lse = -1e200 }))
    luaunit.assertAlmostEquals(results.loss, 0.5 * 1.25, 1e-12, name)
    luaunit.assertEquals(results.lse, 0, name)
  end
end

function TestTokenLoss:test_without_its_scale_the_divergence_may_be_infinite()
  local program = self.generator.token_loss("policy_gradient_kl", support.read_template)
  local results = run(program, support.with(point, { kl_scale = 0, reference_logp = 1000 }))
  luaunit.assertAlmostEquals(results.loss, -math.exp(0.05) * 1.5, 1e-12)
  luaunit.assertAlmostEquals(results.logp, -math.exp(0.05) * 1.5, 1e-12)
  luaunit.assertTrue(run(program, support.with(point, { kl_scale = -0.5 })).loss < results.loss)
end

-- Where sampling left a token out, old_logp is -inf, and with an advantage of 0 the token counts nothing.
function TestTokenLoss:test_a_ratio_without_bounds_times_no_advantage_is_nothing()
  for _, name in ipairs { "policy_gradient", "policy_gradient_kl" } do
    local program = self.generator.token_loss(name, support.read_template)
    for _, old in ipairs { -math.huge, -1e9, -120 } do
      local results = run(program, support.with(point, { advantages = 0, old_logp = old, kl_scale = 0 }))
      luaunit.assertEquals({ results.loss + 0.0, results.logp + 0.0 }, { 0.0, 0.0 }, name)
      luaunit.assertTrue(math.abs(run(program, support.with(point, { advantages = 1, old_logp = old, kl_scale = 0 })).loss) < 2, name)
    end
  end
end

function TestTokenLoss:test_every_function_differentiates()
  local losses = {
    "t.logp + t.lse - t.entropy * t.uniform / t.lse", "-exp(t.logp * t.lse)", "log(t.lse) / t.uniform", "t.lse ^ 3 - 2 ^ 3",
    "min(t.logp, t.lse) + max(t.entropy, t.uniform)", "min(t.lse, t.logp) * max(t.uniform, t.entropy)", "abs(t.logp) + abs(t.lse)",
    "clamp(t.logp, -2, -1) + clamp(t.lse, 0, 1) + clamp(t.entropy, 2, 3)", "where(less(t.logp, t.lse), t.entropy ^ 2, t.uniform)",
    "where(less(t.lse, t.logp), t.entropy ^ 2, t.uniform)", "1 / (1 + exp(-t.logp))", "t.logp * t.logp * t.logp - t.logp", "3",
    "(t.logp - t.old_logp) * t.class_weight * t.scale", "max(1, 2) * t.logp", "t.logp * 0 + t.lse",
  }
  for i, loss in ipairs(losses) do
    local name = "loss_" .. i
    luaunit.assertTrue(define(self, name, loss, '"old_logp"', '{ "scale", 0.25 }'))
    check_derivatives(self, name, point)
  end
end

function TestTokenLoss:test_what_is_detached_has_no_derivative()
  define(self, "detached", "detach(exp(t.logp)) * t.logp")
  local results = run(self.generator.token_loss("detached"), point)
  luaunit.assertAlmostEquals(results.loss, math.exp(-1.25) * -1.25, 1e-12)
  luaunit.assertAlmostEquals(results.logp, math.exp(-1.25), 1e-12)
end

-- Where two numbers are equal, min and max take the first, and so do their derivatives.
function TestTokenLoss:test_equal_numbers_share_no_derivative()
  define(self, "equal", "min(t.logp, t.lse) + max(2 * t.logp, 2 * t.lse)")
  local results = run(self.generator.token_loss("equal"), support.with(point, { lse = point.logp }))
  luaunit.assertEquals({ results.logp, results.lse or 0 }, { 3.0, 0.0 })
end

function TestTokenLoss:test_what_is_shared_is_computed_once()
  define(self, "shared", "exp(t.logp - 1) + exp(t.logp - 1) * t.lse")
  local _, count = self.generator.token_loss("shared"):gsub("value exp", "")
  luaunit.assertEquals(count, 1)
end

function TestTokenLoss:test_a_statistic_that_is_not_used_is_not_read()
  for _, name in ipairs { "entropy", "uniform", "lse", "class_weight" } do
    luaunit.assertNil(self.generator.token_loss("policy_gradient", support.read_template):find(name))
  end
end

function TestTokenLoss:test_a_kernel_holds_the_definition()
  define(self, "halved", "-0.5 * t.logp + 0.1")
  local source = self.generator.emit("token_loss.loss_halved.sm_90a", support.read_template).source
  luaunit.assertStrContains(source, "// The token loss halved and its derivatives.")
  luaunit.assertStrContains(source, ("__uint_as_float(0x%08xu)"):format(0x3dcccccd)) -- 0.1f
end

-- If two programs define different losses with one name, the numeric identity tells them apart.
function TestTokenLoss:test_definitions_have_an_identity()
  local function numerics(loss)
    local generator = support.fresh_generator()
    assert(generator.define_token_loss("mine", ("return { loss = function(t) return %s end }"):format(loss), support.read_template))
    local manifest = generator.emit("token_loss.loss_mine.sm_80", support.read_template).manifest
    local identity = manifest:match("numerics token_loss.r3.(mine%-%x+)\n")
    luaunit.assertStrContains(generator.token_loss("mine"), "identity " .. identity .. "\n")
    return identity
  end
  luaunit.assertEquals(numerics("t.logp"), numerics("t.logp"))
  luaunit.assertNotEquals(numerics("t.logp"), numerics("-t.logp"))
  luaunit.assertStrContains(self.generator.token_loss("policy_gradient", support.read_template), "identity policy_gradient\n")
end

function TestTokenLoss:test_what_is_wrong_is_said()
  local function refused(text, part) support.assert_refused({ part }, self.generator.define_token_loss("wrong", text, support.read_template)) end
  refused("return {", "wrong:1:")
  refused("return 1", "wanted a table with a function `loss`")
  refused("return { loss = 1 }", "wanted a table with a function `loss`")
  refused("return { loss = function(t) return end }", "loss: returned a nil")
  refused("return { loss = function(t) return 'x' end }", "loss: returned a string")
  refused("return { loss = function(t) return t.reward end }", "t.reward: there are logp, lse")
  refused("return { loss = function(t) t.x = 1 end }", "t.x: cannot be assigned")
  refused("x = 1", "global x: there are no globals to assign")
  refused("return { loss = function(t) return io.open('x') end }", "wrong:1: io is not known; wanted a local, a field of the loss' argument, or exp, log,")
  refused("return { loss = function(t) return logp end }", "wrong:1: logp is not known; wanted a local, a field of the loss' argument")
  refused("return { loss = function(t) return t.logp + 'x' end }", "got a string, wanted a number or an expression")
  refused("return { loss = function(t) return max('x', 1) end }", "got a string, wanted a number or an expression")
  refused("return { loss = function(t) return t.logp + {} end }", "got a table, wanted a number or an expression")
  refused("return { loss = function(t) return exp() end }", "exp: got 0 values, wanted 1")
  refused("return { loss = function(t) return t.logp / 0 end }", "the number inf is not finite")
  refused("return { loss = function(t) return t.logp / 0 * -1 end }", "the number -inf is not finite")
  refused("return { loss = function(t) return t.logp * 1e39 end }", "the number 1e+39 is not finite in fp32")
  refused("return { parameters = { { 'a', -1e39 } }, loss = function(t) return t.a end }", "parameters: a is -1e+39, wanted a number that is finite in fp32")
  refused("return { loss = function(t) return t.logp ^ 0.5 end }", "wanted a whole number n of 1 .. 8")
  refused("return { loss = function(t) return t.logp < 0 end }", "wanted where(less(a, b), x, y)")
  refused("return { loss = function(t) return where(t.logp, 1, 2) end }", "where: got no less(a, b)")
  refused("return { loss = function(t) return t.logp + exp end }", "got the function exp, wanted a number or an expression")
  refused("return { loss = function(t) return max(log, 1) end }", "got the function log, wanted a number or an expression")
  refused("return { inputs = { 'logp' }, loss = function(t) return 1 end }", "inputs: got logp, which is the name of a statistic already")
  refused("return { inputs = { 'a', 'a' }, loss = function(t) return 1 end }", "inputs: got a, which is the name of an input already")
  refused("return { inputs = { 'a' }, parameters = { { 'a', 1 } }, loss = function(t) return 1 end }", "got a, which is the name of an input")
  refused("return { inputs = { 'end' }, loss = function(t) return 1 end }", "inputs: got end, which is a keyword of Lua")
  refused("return { parameters = { { 'not', 1 } }, loss = function(t) return 1 end }", "parameters: got not, which is a keyword of Lua")
  refused("return { inputs = { 'Name' }, loss = function(t) return 1 end }", "inputs: got Name, wanted letters")
  refused("return { inputs = 'a', loss = function(t) return 1 end }", "inputs: wanted a list of at most 8 names")
  refused("return { parameters = { 'a' }, loss = function(t) return 1 end }", "parameters: got nil")
  refused("return { parameters = { { 'a' } }, loss = function(t) return 1 end }", "parameters: a is nil, wanted a number that is finite in fp32")
  refused("return { parameters = { { 'a', 1 / 0 } }, loss = function(t) return 1 end }", "parameters: a is inf")
  refused("return { parameters = 1, loss = function(t) return 1 end }", "wanted a list of at most 8 pairs")
  support.assert_refused({ "name: got a b" }, self.generator.define_token_loss("a b", "return 1", support.read_template))
  support.assert_refused({ "token loss none: there is none of that name" }, self.generator.token_loss("none", support.read_template))
  support.assert_refused({ "there is none of that name" }, self.generator.select("linear_cross_entropy:bf16:n1:d8:v8:loss_none", 90, "auto", "", support.read_template))
end

local function define_text(self, name, text, inputs)
  return self.generator.define_token_loss(name, ("return { inputs = { %s }, expression = %q }"):format(inputs or "", text), support.read_template)
end

-- The same program as the function's, whatever stands around it.
function TestTokenLoss:test_a_loss_may_be_the_text_of_an_expression()
  luaunit.assertTrue(define(self, "function_of_t", "-t.t * exp(t.logp) - 1", '"t"'))
  local wanted = self.generator.token_loss("function_of_t"):gsub("identity [^\n]*", "")
  local texts = {
    "-t * exp(logp) - 1", "-t * exp(logp) - 1 -- to return", "-- return\n-t * exp(logp) - 1", "local n = -t\nreturn n * exp(logp) - 1",
    "return -t * exp(logp) - 1;",
    "-- a comment\nlocal function f(x) return exp(x) end return -t * f(logp) - 1",
  }
  for i, text in ipairs(texts) do
    local name = "text_" .. i
    luaunit.assertTrue(define_text(self, name, text, '"t"'))
    luaunit.assertEquals(self.generator.token_loss(name):gsub("identity [^\n]*", ""), wanted, text)
  end
  luaunit.assertTrue(define_text(self, "number", "3"))
end

function TestTokenLoss:test_what_is_wrong_with_a_text_is_said()
  local function refused(text, part, inputs) support.assert_refused({ part }, define_text(self, "wrong", text, inputs)) end
  refused("logp + foo", "token loss wrong: expression:1: foo is not known; wanted logp, lse, entropy, uniform, class_weight, a, exp, log, min, max,", '"a"')
  refused("local x = logp\nreturn bar(x)", "expression:2: bar is not known")
  refused("t.logp", "expression:1: t is not known")
  refused("x = 1 return x", "expression: global x: there are no globals to assign")
  refused("logp +", "expression:1: unexpected symbol near <eof>")
  refused("logp + -- return", "expression:1: unexpected symbol near <eof>")
  refused("local x =\nreturn x", "expression:2: unexpected symbol near 'return'")
  refused("local x = logp", "expression: gives a nil, wanted an expression; statements end in `return ...`")
  refused("exp", "expression: gives a function, wanted an expression")
  refused("logp + exp", "expression: got the function exp, wanted a number or an expression")
  refused("logp < 1", "expression: a < b of expressions: wanted where(less(a, b), x, y)")
  refused("exp", "inputs: got exp, which is the name of a function already", '"exp"')
  for _, name in ipairs { "log", "min", "max", "abs", "clamp", "where", "less", "detach" } do
    refused("logp", ("inputs: got %s, which is the name of a function"):format(name), ('"%s"'):format(name))
  end
  local function refused_definition(text)
    support.assert_refused({ "wanted a table with" }, self.generator.define_token_loss("wrong", text, support.read_template))
  end
  refused_definition("return { expression = 3 }")
  refused_definition("return { expression = 'logp', loss = function(t) return t.logp end }")
  refused_definition("return { expression = 3, loss = function(t) return t.logp end }")
  luaunit.assertTrue(define(self, "field_of_t", "t.exp * exp(t.logp)", '"exp"')) -- a function's argument keeps the two apart
end

function TestTokenLoss:test_a_name_stands_for_one_definition()
  luaunit.assertTrue(define(self, "mine", "t.logp"))
  luaunit.assertTrue(define(self, "mine", "t.logp"))
  support.assert_refused({ "token loss mine: it is defined already, otherwise" }, define(self, "mine", "t.lse"))
  support.assert_refused({ "defined already" }, define(self, "cross_entropy", "t.lse"))
end

support.run()
