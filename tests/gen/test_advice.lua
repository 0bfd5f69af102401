-- gen/advice.lua: which GPUs have slow memory, what is advised for them, and that a row's bits stay the same.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local lu = require "luaunit"
local fusedlogp = require "gen.fusedlogp"
local problem = require "gen.problem"
local select = require "gen.select"
local support = require "tests.gen.support"

TestAdvice = {}

-- Facts as the drivers of these GPUs give them.
local h100 = { multiprocessors = 132, clock_hz = 1.98e9, l2_bytes = 50 << 20, memory = 2 * 2619e6 * 640 }
local h200 = { multiprocessors = 132, clock_hz = 1.98e9, l2_bytes = 60 << 20, memory = 2 * 3201e6 * 768 }
local main_gradient = "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight"

local function advised(text, facts, capability)
  return assert(fusedlogp.advice(text, capability or 90, "auto", facts, support.read_template))
end

local shared = "hidden_product.bv=256,hidden_product.stages=4,hidden_product.wg=64,"
local weight_shared = "weight_product.bv=256,weight_product.stages=4,weight_product.wg=64"

function TestAdvice.test_products_share_tiles_where_turns_read_too_much()
  lu.assertEquals(advised(main_gradient, h100), shared .. weight_shared)
  lu.assertEquals(advised("linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_f32:acc_weight", h100), shared .. weight_shared)
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2048:d4096:v128256:gh_bf16:gw_bf16", h100), weight_shared)
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2049:d4096:v128256:dv:gw_f32", h100), weight_shared)
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2049:d4096:v128257:dv:ws128264:gws128264:gw_bf16", h100), weight_shared)
end

function TestAdvice.test_wide_tiles_keep_their_turns()
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2049:d4096:v128256:dv:gh_bf16:gw_bf16", h100), shared .. "weight_product.bv=192,weight_product.stages=4")
  local text = "linear_cross_entropy:bf16:n8192:d4096:v128256:%sgh_bf16:gw_bf16:direct:saved_exp:hidden_first"
  lu.assertEquals(advised(text:format("dv:"), h100), shared .. "save_exp_tile.bm=256,save_exp_tile.stages=3")
  lu.assertEquals(advised(text:format(""), h100), "save_exp_tile.cluster=2,save_exp_tile.group=8")
end

function TestAdvice.test_short_sums_keep_their_turns()
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2048:d4096:v128256:gh_bf16:gw_f32:acc_weight", h100), "")
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2048:d4096:v128256:dv:gh_bf16:gw_bf16", h100), "")
  lu.assertEquals(advised("linear_cross_entropy:bf16:n1024:d4096:v128256:gh_bf16:gw_bf16", h100), "")
end

-- A group has 16 MiB of rows. With row groups of twice the rows there are half as many of them in a group.
function TestAdvice.test_saved_exponentials_are_of_clusters()
  lu.assertEquals(advised("linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16:saved_exp", h100), "save_exp_tile.cluster=2,save_exp_tile.group=8")
  lu.assertEquals(advised(main_gradient .. ":saved_exp", h100), shared .. "save_exp_tile.cluster=2,save_exp_tile.group=8," .. weight_shared)
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2048:d4096:v128256:gh_bf16:saved_exp", h100), "")
  lu.assertEquals(advised("linear_cross_entropy:bf16:n2048:d4096:v128256:dv:gh_bf16:saved_exp", h100), "")
end

-- With a [D, V] weight, because its TMA boxes cannot be shared by the blocks of a cluster.
function TestAdvice.test_saved_exponentials_are_of_warpgroups_that_share_columns()
  lu.assertEquals(advised("linear_cross_entropy:bf16:n8192:d4096:v128256:dv:gh_bf16:saved_exp", h100), shared .. "save_exp_tile.bm=256,save_exp_tile.stages=3")
  lu.assertEquals(advised("linear_cross_entropy:bf16:n8192:d2056:v128256:dv:gh_bf16:saved_exp", h100), shared .. "save_exp_tile.bm=256,save_exp_tile.stages=3")
  lu.assertEquals(advised("linear_cross_entropy:bf16:n8192:d2048:v128256:dv:gh_bf16:saved_exp", h100) .. ",", shared)
  lu.assertEquals(advised("linear_cross_entropy:bf16:n4096:d4096:v128256:dv:gh_bf16:saved_exp", h100) .. ",", shared)
  lu.assertEquals(advised("linear_cross_entropy:bf16:n8192:d4096:v128256:dv:bias_bf16:gh_bf16:saved_exp", h100) .. ",", shared)
end

function TestAdvice.test_other_gpus_keep_what_is_selected()
  for _, text in ipairs { main_gradient, main_gradient .. ":saved_exp" } do
    lu.assertEquals(advised(text, h200), "")
    lu.assertEquals(advised(text, {}), "") -- a GPU of which nothing is known
    lu.assertEquals(advised(text, h100, 80), "")
    lu.assertEquals(advised(text, { multiprocessors = 66, clock_hz = h100.clock_hz, memory = h100.memory }), "") -- half the tensor cores
  end
  support.assert_refused({ "calibration" }, fusedlogp.advice(main_gradient, 90, "auto", { calibration = "nonsense" }, support.read_template))
  support.assert_refused({ "odd" }, fusedlogp.advice("odd:bf16", 90, "auto", h100, support.read_template))
end

local function identity(text, tuning) return assert(fusedlogp.identity(text, 90, "auto", tuning, support.read_template)) end

-- This goes through every kind of step that is prebuilt.
function TestAdvice.test_what_is_advised_can_be_had_and_keeps_the_bits()
  local changed = 0
  for _, operator in ipairs(problem.operators) do
    for _, dtype in ipairs { "bf16", "f16", "f32" } do
      for _, text in ipairs(select.operator(operator).prebuilt(dtype, { 2304 })) do
        local tuning = advised(text, h100)
        if tuning ~= "" then
          lu.assertEquals(identity(text, tuning).numerics, identity(text, "").numerics, text)
          changed = changed + 1
        end
      end
    end
  end
  lu.assertTrue(changed >= 15, changed)
end

-- So a tuning run that ends early chooses at least as well as no tuning.
function TestAdvice.test_it_is_the_first_candidate()
  local function candidates(facts, base)
    return assert(fusedlogp.candidates(main_gradient, 90, "auto", base, facts, false, 2, support.read_template))
  end
  local seconds, text = candidates(h100, "")[2]:match("^(%d+) %- (.*)$")
  lu.assertEquals(text, shared .. weight_shared)
  lu.assertTrue(tonumber(seconds) > 0)
  lu.assertStrContains(candidates(h200, "")[2], " tile tile.")
  lu.assertStrContains(candidates(h100, "weight_product.stages=6")[2], " tile tile.")
end

local function set_of(list)
  local set = {}
  for _, item in ipairs(list) do set[item] = true end
  return set
end

function TestAdvice.test_a_prebuild_has_both()
  local listed = set_of(support.list("sm_90a"))
  for _, tuning in ipairs { "", advised(main_gradient, h100) } do
    for _, kernel in ipairs(assert(fusedlogp.select(main_gradient, 90, "auto", tuning, support.read_template)).kernels) do
      lu.assertTrue(listed[kernel.variant], kernel.variant)
    end
  end
end

support.run()
