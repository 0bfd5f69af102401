-- gen/problem.lua: the problem's string as C writes it.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local problem = require "gen.problem"

TestProblem = {}

local plain = "linear_logp:bf16:n4096:d2048:v131072"

function TestProblem.test_a_plain_problem_has_the_defaults()
  luaunit.assertEquals(problem.parse(plain), {
    operator = "linear_logp", dtype = "bf16", element_bytes = 2, n = 4096, d = 2048, v = 131072, pointer_alignment = 16,
    hidden_stride = 2048, weight_stride = 2048,
  })
end

function TestProblem.test_each_option_sets_its_field()
  local p = problem.parse("linear_logp:f32:n0:d3:v50257:dv:hs8:ws50264:align4:bias_f16:target_i32:softcap30:argmax:entropy:exact:portable")
  luaunit.assertEquals(p, {
    operator = "linear_logp", dtype = "f32", element_bytes = 4, n = 0, d = 3, v = 50257, pointer_alignment = 4, hidden_stride = 8,
    weight_stride = 50264, dv = true, bias_dtype = "f16", softcap = true, argmax = true, entropy = true, exact = true,
    target_i32 = true, portable = true,
  })
end

function TestProblem.test_the_backward_has_the_forward_s_parts_and_its_own()
  local head = "linear_logp_backward:f16:n5:d3:v50257"
  luaunit.assertEquals(problem.parse(head .. ":hs8:gh_f16"), {
    operator = "linear_logp_backward", dtype = "f16", element_bytes = 2, n = 5, d = 3, v = 50257, pointer_alignment = 16, hidden_stride = 8,
    weight_stride = 3, grad_hidden = "f16", grad_hidden_stride = 8, grad_weight_stride = 3,
  })
  luaunit.assertEquals(problem.parse(head .. ":dv:ws50264:align4:bias_f16:target_i32:softcap30:exact:gh_bf16:gw_f32:gb_f16:ghs9:gws50265" ..
                                     ":acc_hidden:acc_weight:acc_bias:g_lse:g_entropy:budget4096:cpu"), {
    operator = "linear_logp_backward", dtype = "f16", element_bytes = 2, n = 5, d = 3, v = 50257, pointer_alignment = 4, hidden_stride = 3,
    weight_stride = 50264, dv = true, bias_dtype = "f16", softcap = true, exact = true, grad_hidden = "bf16", grad_weight = "f32",
    grad_bias = "f16", grad_hidden_stride = 9, grad_weight_stride = 50265, acc_hidden = true, acc_weight = true, acc_bias = true,
    g_lse = true, g_entropy = true, memory_budget = 4096, target_i32 = true, cpu = true,
  })
  support.assert_refused({ "unknown part \"argmax\"" }, problem.parse(head .. ":argmax"))
end

function TestProblem.test_the_cross_entropy_has_the_backward_s_parts_and_its_own()
  local head = "linear_cross_entropy:bf16:n5:d8:v50257"
  local plain_fields = {
    operator = "linear_cross_entropy", dtype = "bf16", element_bytes = 2, n = 5, d = 8, v = 50257, pointer_alignment = 16, hidden_stride = 8,
    weight_stride = 8, grad_hidden_stride = 8, grad_weight_stride = 8, token_loss = "cross_entropy",
  }
  luaunit.assertEquals(problem.parse(head), plain_fields)
  luaunit.assertEquals(problem.parse(head .. ":sum:smoothing").token_loss, "smoothed_cross_entropy")
  luaunit.assertEquals(problem.parse(head .. ":entropy:gh_bf16:gw_f32:acc_weight:budget4096:none:classes_f16:tokens:loss_my_loss2:portable"),
                       support.with(plain_fields, {
    entropy = true, grad_hidden = "bf16", grad_weight = "f32", acc_weight = true, memory_budget = 4096, class_weights = "f16", token_loss = "my_loss2",
    none = true, tokens = true, portable = true,
  }))
  support.assert_refused({ "unknown part \"mean\"" }, problem.parse(head .. ":mean"))
  support.assert_refused({ "unknown part \"g_lse\"" }, problem.parse(head .. ":g_lse"))
end

function TestProblem.test_a_transposed_weight_has_rows_of_the_vocabulary()
  luaunit.assertEquals(problem.parse(plain .. ":dv").weight_stride, 131072)
end

function TestProblem.test_the_softcap_is_any_number()
  for _, number in ipairs { "30", "0.5", "1e-30", "1.5e+20" } do
    luaunit.assertTrue(problem.parse(plain .. ":softcap" .. number).softcap, number)
  end
end

function TestProblem.test_each_backend_is_known()
  for _, backend in ipairs { "sm_90a", "portable", "cpu" } do luaunit.assertNotNil(problem.parse(plain .. ":" .. backend)) end
end

function TestProblem.test_sizes_reach_the_largest_int64()
  local p = problem.parse("linear_logp:bf16:n4294967296:d2147483647:v2147483647:hs9223372036854775807")
  luaunit.assertEquals({ p.n, p.d, p.v, p.hidden_stride }, { 1 << 32, 2147483647, 2147483647, math.maxinteger })
end

function TestProblem.test_what_is_wrong_is_said()
  local cases = {
    { "", "unknown operator \"\", known are linear_logp" },
    { "linear_logp", "wanted linear_logp:<dtype>:n<N>:d<D>:v<V>" },
    { "linear:bf16:n1:d1:v1", "unknown operator \"linear\"" },
    { "linear_logp:bf16:d1:n1:v1", "wanted linear_logp:<dtype>" },
    { "linear_logp:bf16:n-1:d1:v1", "wanted linear_logp:<dtype>" },
    { "linear_logp:f64:n1:d1:v1", "dtype f64, wanted bf16, f16 or f32" },
    { plain .. "dv", "wanted linear_logp:<dtype>" },
    { plain .. ":", "unknown part \"\"" },
    { plain .. ":dv:", "unknown part \"\"" },
    { plain .. "::dv", "unknown part \"\"" },
    { plain .. ":fast", "unknown part \"fast\"" },
    { plain .. ":hs", "unknown part \"hs\"" },
    { plain .. ":hs-8", "unknown part \"hs-8\"" },
    { plain .. ":align0", "align0" },
    { plain .. ":bias_f64", "bias_f64" },
    { "linear_logp:bf16:n1:d0:v1", "d0" },
    { "linear_logp:bf16:n1:d1:v0", "v0 is for shards of a vocabulary" },
    { "linear_logp:bf16:n1:d1:v0:of0", "of0" },
    { "linear_logp:bf16:n99999999999999999999:d1:v1", "n99999999999999999999" },
    { plain .. ":ws99999999999999999999", "ws99999999999999999999" },
  }
  local missed = support.refusals_missed("gen/problem.lua", function()
    local problem = require "gen.problem"
    for _, case in ipairs(cases) do support.assert_refused({ case[2] }, problem.parse(case[1])) end
  end)
  luaunit.assertEquals(missed, "")
end

-- {part as the operators have it, with <> for a value: the operators that have it, in order}
local function parts_of_operators()
  local parts = {}
  local function add(part, operator)
    parts[part] = parts[part] or {}
    parts[part][operator] = true
  end
  for _, fields in ipairs(require "gen.problem_fields") do
    for _, word in ipairs(fields.words) do add(word, fields.operator) end
    for _, field in ipairs(fields) do add(field.prefix .. "<>", fields.operator) end
  end
  return parts
end

-- The same from the table of docs/operating.md, whose second column has names of operators and of groups of them.
local function parts_of_the_document()
  local groups = { linear = { "linear_logp", "linear_logp_backward", "linear_cross_entropy" }, gradients = { "linear_logp_backward", "linear_cross_entropy" },
                   all = problem.operators }
  local section = assert(support.read_template("docs/operating.md"):match("\n## Problems as text\n(.-)\n## "))
  local parts = {}
  for names, operators in section:gmatch("\n| (`[^|]+) | ([^|]+) |") do
    for name in names:gmatch("`([^`]+)`") do
      local part = name:gsub("<.*>", "<>")
      parts[part] = parts[part] or {}
      for operator in operators:gmatch("[%w_]+") do
        for _, each in ipairs(groups[operator] or { operator }) do parts[part][each] = true end
      end
    end
  end
  return parts
end

function TestProblem.test_the_table_of_the_documents_has_all_parts_and_their_operators()
  luaunit.assertEquals(parts_of_the_document(), parts_of_operators())
end

support.run()
