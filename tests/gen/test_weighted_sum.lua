-- weighted_sum and its backward: which kernels are selected for a problem, and each rule of these kernels.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local emit = require "gen.emit"
local fusedlogp = require "gen.fusedlogp"
local variant = require "gen.variant"

TestWeightedSum = {}

local function selected(problem, capability, backend)
  local found, reason = fusedlogp.select(problem, capability or 90, backend or "auto")
  luaunit.assertNotNil(found, ("%s: %s"):format(problem, reason))
  return found
end

local function kernels(problem, capability) return support.variants(selected(problem, capability)) end

local function numerics(text) return (fusedlogp.emit(text, support.read_template).manifest:match("\nnumerics ([^\n]*)")) end

function TestWeightedSum.test_the_sum_has_one_kernel_for_all_devices()
  for capability, arch in pairs { [80] = "sm_80", [89] = "sm_89", [90] = "sm_90", [100] = "sm_100" } do
    local found = selected("weighted_sum:bf16:n65536:d4096", capability)
    luaunit.assertEquals(support.variants(found), { "weighted_sum.bf16.w_bf16.y_bf16.t128." .. arch })
    luaunit.assertEquals(found.path, "portable")
    luaunit.assertStrContains(found.reason, "not sm_90a: weighted_sum has one kernel for all GPUs")
  end
end

-- A thread has at most four vectors of a row, as long as a block has enough threads.
function TestWeightedSum.test_the_team_follows_the_bytes_of_a_row()
  for problem, team in pairs {
    ["bf16:n1:d1"] = 1, ["bf16:n1:d32"] = 1, ["bf16:n1:d33"] = 2, ["f32:n1:d16"] = 1, ["f32:n1:d17"] = 2, ["bf16:n1:d512"] = 16,
    ["f32:n1:d512"] = 32, ["bf16:n1:d4096"] = 128, ["f32:n1:d4096"] = 256, ["f16:n1:d32768"] = 256, ["f32:n1:d1000001"] = 256,
  } do
    luaunit.assertEquals(variant.parse(kernels("weighted_sum:" .. problem)[1]).team, team, problem)
  end
end

-- The launch computes its number of blocks from the rows of a block, which the manifest has.
function TestWeightedSum.test_a_block_has_a_row_of_each_team()
  for columns, rows in pairs { [32] = 256, [33] = 128, [512] = 16, [4096] = 2, [32768] = 1 } do
    local manifest = fusedlogp.emit(kernels("weighted_sum:bf16:n1:d" .. columns)[1], support.read_template).manifest
    luaunit.assertEquals(manifest:match("\nblock_rows (%d+)"), tostring(rows), columns)
  end
end

-- A row's bits follow from its kernel's numeric identity, which depends neither on N nor on x's address and stride nor on the device.
function TestWeightedSum.test_the_identity_follows_d_and_the_dtypes_alone()
  for _, dtypes in ipairs { "bf16:n%d:d1000%s", "f32:n%d:d1000%s:w_bf16", "f16:n%d:d1000%s:w_f32:y_f32" } do
    local wanted = numerics(kernels("weighted_sum:" .. dtypes:format(4096, ""))[1])
    luaunit.assertNotNil(wanted)
    for _, lies in ipairs { "", ":align4", ":xs1001:align4", ":xs1004" } do
      for _, capability in ipairs { 80, 90, 120 } do
        luaunit.assertEquals(numerics(kernels("weighted_sum:" .. dtypes:format(1, lies), capability)[1]), wanted)
      end
    end
  end
end

function TestWeightedSum.test_loads_are_as_wide_as_x_allows()
  for problem, bytes in pairs {
    ["bf16:n1:d64"] = false, ["bf16:n1:d64:align8"] = 8, ["bf16:n1:d64:align2"] = 2, ["bf16:n1:d65"] = 2, ["bf16:n1:d66"] = 4,
    ["bf16:n1:d65:xs72"] = false, ["f32:n1:d65"] = 4, ["f32:n1:d66"] = 8, ["f16:n1:d64:xs68"] = 8,
  } do
    luaunit.assertEquals(variant.parse(kernels("weighted_sum:" .. problem)[1]).vec or false, bytes, problem)
  end
  support.assert_refused({ "x is aligned to 2 bytes, elements have 4" }, fusedlogp.select("weighted_sum:f32:n1:d64:align2", 90, "auto"))
end

function TestWeightedSum.test_each_gradient_brings_its_kernels()
  local problem = "weighted_sum_backward:bf16:n4096:d4096"
  luaunit.assertEquals(kernels(problem .. ":gx_f32:gw_bf16", 80), {
    "weighted_sum_outer.f32.w_bf16.g_bf16.sm_80", "weighted_sum_tile.bf16.g_bf16.gw_bf16.sm_80", "weighted_sum_combine.gw_bf16.sm_80",
  })
  luaunit.assertEquals(kernels(problem .. ":w_f32:y_f32:gx_bf16"), { "weighted_sum_outer.bf16.w_f32.g_f32.sm_90" })
  luaunit.assertEquals(kernels(problem .. ":gw_f32:accumulate"), { "weighted_sum_tile.bf16.g_bf16.gw_f32.sm_90a", "weighted_sum_combine.gw_f32.sm_90a" })
end

function TestWeightedSum.test_each_gradient_s_accesses_are_as_wide_as_its_own_array_allows()
  local specs = support.specs(selected "weighted_sum_backward:bf16:n9:d64:align4:xs66:gxs72:gx_bf16:gw_bf16")
  luaunit.assertEquals({ specs.outer.vec, specs.tile.vec }, { 4, 4 })
  specs = support.specs(selected "weighted_sum_backward:bf16:n9:d64:xs65:gxs68:gx_bf16:gw_bf16")
  luaunit.assertEquals({ specs.outer.vec, specs.tile.vec }, { 8, 2 })
end

-- On sm_90a only the combine differs: its launch overlaps the end of the tile kernel.
function TestWeightedSum.test_hopper_is_chosen_for_grad_w_alone()
  luaunit.assertEquals(selected("weighted_sum_backward:f32:n9:d64:gw_f32", 90).path, "sm_90a")
  for _, case in ipairs {
    { ":gw_f32", 89, "not sm_90a: compute capability 8.9" }, { ":gx_f32", 90, "not sm_90a: grad_x alone has one kernel for all GPUs" },
  } do
    local found = selected("weighted_sum_backward:f32:n9:d64" .. case[1], case[2])
    luaunit.assertEquals(found.path, "portable")
    luaunit.assertStrContains(found.reason, case[3])
  end
  luaunit.assertEquals(support.variant(selected("weighted_sum_backward:f32:n9:d64:gw_f32", 90, "portable"), "tile"), "weighted_sum_tile.f32.g_f32.gw_f32.sm_90")
end

-- What a prebuild compiles is what selection chooses later.
function TestWeightedSum.test_the_usual_kernels_are_prebuilt()
  for _, capability in ipairs { 80, 90, 120 } do
    local listed = {}
    for _, text in ipairs(support.list(capability == 90 and "sm_90a" or "sm_" .. capability)) do listed[text] = true end
    for _, dtype in ipairs { "bf16", "f16", "f32" } do
      for _, problem in ipairs {
        "weighted_sum:%s:n7:d2048", "weighted_sum:%s:n100000:d8192", "weighted_sum_backward:%s:n5:d1024:gx_%s:gw_%s",
      } do
        local text = problem:gsub("%%s", dtype)
        for _, name in ipairs(kernels(text, capability)) do luaunit.assertTrue(listed[name], ("%s: %s"):format(text, name)) end
      end
    end
  end
end

function TestWeightedSum.test_each_rule_refuses_with_a_reason()
  local sum = { operator = "weighted_sum", dtype = "bf16", weight = "bf16", y = "bf16", team = 64, arch = "sm_90" }
  luaunit.assertTrue(emit.check(sum))
  for _, case in ipairs {
    { { team = 48 }, { "t = 48", "a power of two up to 256" } }, { { team = 512 }, { "t = 512", "a power of two up to 256" } },
    { { vec = 16 }, { "vec = 16", "2, 4 or 8 bytes" } }, { { vec = 2, dtype = "f32" }, { "vec = 2", "an element of f32 has 4 bytes" } },
  } do
    support.assert_refused(case[2], emit.check(support.with(sum, case[1])))
  end
  for _, operator in ipairs { "weighted_sum_outer", "weighted_sum_tile" } do
    local spec = { operator = operator, dtype = "f32", weight = "f32", g = "f32", gw = "f32", vec = 2, arch = "sm_90" }
    support.assert_refused({ "vec = 2", "an element of f32 has 4 bytes" }, emit.check(spec))
  end
end

support.run()
