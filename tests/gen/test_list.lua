-- gen/list.lua: the variants that a prebuild for an architecture compiles.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local arch = require "gen.arch"
local fusedlogp = require "gen.fusedlogp"
local list = require "gen.list".variants
local variant = require "gen.variant"

TestList = {}

-- Several architectures list the same variants (sm_100 and sm_100a), which are emitted once.
function TestList.test_every_variant_can_be_emitted_and_stands_there_once()
  local emitted = {}
  for _, name in ipairs(arch.names) do
    local seen = {}
    for _, text in ipairs(list(name, nil, { 1024, 2304 }, support.read_template)) do
      luaunit.assertNil(seen[text], text)
      seen[text] = true
      emitted[text] = emitted[text] or fusedlogp.emit(text, support.read_template) ~= nil
      luaunit.assertTrue(emitted[text], text)
    end
  end
end

-- The listed kernels of linear_logp and its backward.
local function linear_logp(arch_name, dtypes, hidden_sizes)
  local found = {}
  for _, text in ipairs(list(arch_name, dtypes, hidden_sizes, support.read_template)) do
    if text:find("^linear_logp") or text:find("^matrix_product") then found[#found + 1] = text end
  end
  return found
end

-- They have the names by which a device looks for them: the portable kernels for sm_100a are those of sm_100.
function TestList.test_variants_are_of_the_architecture()
  for _, name in ipairs(arch.names) do
    for _, text in ipairs(support.list(name)) do
      if name ~= "sm_90a" then luaunit.assertEquals(variant.parse(text).arch, arch.portable_for(arch.find(name).capability), text) end
    end
  end
end

-- Problems that sm_90a's own kernels cannot compute run sm_90's: a D whose rows TMA cannot copy, and fp32 gradients.
function TestList.test_sm_90a_falls_back_where_it_must()
  for _, text in ipairs(linear_logp("sm_90a", { "bf16", "f16" })) do luaunit.assertEquals(variant.parse(text).arch, "sm_90a", text) end
  for _, text in ipairs(linear_logp("sm_90a", nil, { 81 })) do luaunit.assertEquals(variant.parse(text).arch, "sm_90", text) end
  for _, text in ipairs(linear_logp("sm_90a", { "f32" }, { 2048 })) do
    local operator = variant.parse(text).operator
    local is_forward = operator == "linear_logp" or operator == "linear_logp_combine"
    luaunit.assertEquals(variant.parse(text).arch, is_forward and "sm_90a" or "sm_90", text)
  end
end

function TestList.test_dtypes_and_hidden_sizes_narrow_it()
  luaunit.assertEquals(linear_logp("sm_90a", { "bf16" }, { 2048 }), {
    "linear_logp.bf16.d2048.bm64.bv168.s132.c1.p6.sm_90a",
    "linear_logp_combine.bm8.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv168.s132.c1.p5.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.sm_90a",
    "linear_logp.bf16.d2048.bm64.bv168.s132.c1.p6.argmax.sm_90a",
    "linear_logp_combine.bm8.argmax.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv168.s132.c1.p5.argmax.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.argmax.sm_90a",
    "linear_logp.bf16.d2048.bm64.bv168.s132.c1.p6.entropy.sm_90a",
    "linear_logp_combine.bm8.entropy.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv168.s132.c1.p5.entropy.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.entropy.sm_90a",
    "linear_logp.bf16.d2048.bm64.bv168.s132.c1.p6.softcap.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv168.s132.c1.p5.softcap.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.softcap.sm_90a",
    "linear_logp.bf16.d2048.bm64.bv168.s132.c1.p6.bias_bf16.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv168.s132.c1.p5.bias_bf16.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.bias_bf16.sm_90a",
    "linear_logp.bf16.d2048.bm64.bv256.s132.c1.p4.dv.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv256.s132.c1.p4.dv.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv256.s132.c2.p4.dv.sm_90a",
    "linear_logp_backward_rows.sm_90a",
    "linear_logp_backward_gather.bf16.sm_90a",
    "linear_logp_grad_logits.bf16.d2048.bm128.wg128.bv192.c1.p4.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.adds.sm_90a",
    "linear_logp_backward_finish.w_bf16.out_bf16.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed.out_bf16.targets_in_rows.sm_90a",
    "linear_logp_backward_target_order.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_bf16.targets_of_rows.sm_90a",
    "linear_logp_backward_finish.bf16.out_bf16.sm_90a",
    "linear_logp_grad_logits.bf16.d2048.bm128.wg128.bv192.c1.p4.softcap.sm_90a",
    "linear_logp_grad_logits.bf16.d2048.bm128.wg128.bv192.c1.p4.bias_bf16.sm_90a",
    "linear_logp_backward_bias.bf16.out_bf16.sm_90a",
    "linear_logp_grad_logits.bf16.d2048.bm128.wg128.bv192.c1.p4.dv.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.out_f32.adds.sm_90a",
    "linear_logp_backward_finish.w_bf16.dv.out_bf16.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_bf16.targets_in_columns.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.out_f32.adds.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv192.c2.p4.a_transposed.b_transposed.out_bf16.targets_in_columns.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.out_bf16.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.out_bf16.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_f32.adds.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_f32.adds.targets_in_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed.out_f32.adds.targets_in_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_bf16.targets_of_rows.sm_90a",
    "linear_logp_grad_logits.bf16.d2048.bm128.wg128.bv192.c1.p4.entropy.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_bf16.targets_in_rows.sm_90a",
    "linear_logp_save_exp.bf16.d2048.bm128.wg128.bv192.s132.c1.p4.sm_90a",
    "linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.sm_90a",
    "linear_logp_save_exp.bf16.d2048.bm128.wg128.bv192.s132.c2.p4.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_f32.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.parts.sm_90a",
    "linear_logp_backward_finish.out_f32.parts.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_f32.parts.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv192.c2.p4.b_transposed.out_f32.parts.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.packed.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_bf16.in_step.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed.out_bf16.in_step.targets_in_rows.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.softcap.packed.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.bias_bf16.packed.sm_90a",
    "linear_logp_save_exp.bf16.d2048.bm128.bv256.s132.c2.p4.bias_bf16.sm_90a",
    "linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8.bias_bf16.sm_90a",
    "linear_logp.bf16.d2048.bm128.bv256.s132.c2.p4.dv.packed.sm_90a",
    "linear_logp_save_exp.bf16.d2048.bm128.wg128.bv192.s132.c1.p4.dv.sm_90a",
    "linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8.dv.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.out_bf16.in_step.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.out_bf16.in_step.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_bf16.in_step.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_f32.adds.in_step.targets_in_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed.out_f32.adds.in_step.targets_in_rows.sm_90a",
    "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.logit_sum.packed.sm_90a",
    "linear_logp_combine.bm8.logit_sum.sm_90a",
    "linear_logp_grad_logits.bf16.d2048.bm128.wg128.bv192.c1.p4.logit_sum.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_f32.adds.slabs.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_bf16.slabs.targets_in_rows.sm_90a",
    "linear_logp_backward_finish.w_bf16.out_bf16.parts.sm_90a",
  })
  luaunit.assertEquals(list("sm_100a", { "f16" }, { 81 }, support.read_template)[1], "linear_logp.f16.d81.bm64.bv128.s108.c1.p4.vec2.sm_100")
end

-- Each option by itself, to be tried with every hidden size that models have, in the dtypes in which they are trained.
local asked_for = {
  "linear_logp:%s:n%d:d%d:v32000:entropy", "linear_logp:%s:n%d:d%d:v32000:softcap30", "linear_logp:%s:n%d:d%d:v32000:bias_%s",
  "linear_logp:%s:n%d:d%d:v32000:dv", "linear_logp_backward:%s:n4%03d:d%d:v32000:gh_%s:gw_f32:acc_weight",
  "linear_logp_backward:%s:n4%03d:d%d:v32000:softcap30:gh_%s:gw_%s", "linear_cross_entropy:%s:n4%03d:d%d:v32000:gh_%s:gw_%s:smoothing",
  "linear_cross_entropy:%s:n4%03d:d%d:v32000:gh_%s:gw_%s:loss_policy_gradient", "linear_cross_entropy:%s:n4%03d:d%d:v32000:gh_%s:gw_f32:acc_weight",
  "linear_cross_entropy:%s:n4%03d:d%d:v32000:bias_%s:gh_%s:gw_%s:gb_%s", "linear_cross_entropy:%s:n4%03d:d%d:v32000:dv:gh_%s:gw_%s",
}
local hidden_sizes = { 768, 896, 1024, 1536, 2048, 2304, 2560, 2880, 3072, 3584, 4096, 5120, 6144, 7168, 8192 }

local function listed_for(name, dtype)
  local listed = {}
  for _, text in ipairs(fusedlogp.list(name, dtype, nil, support.read_template)) do listed[text] = true end
  return listed
end

local function assert_listed(listed, problem, capability)
  for _, text in ipairs(support.variants(fusedlogp.select(problem, capability, "auto", "", support.read_template))) do
    luaunit.assertTrue(listed[text], ("%s: %s"):format(problem, text))
  end
end

function TestList.test_each_option_is_listed_for_the_hidden_sizes_of_models()
  for name, capability in pairs { sm_90a = 90, sm_80 = 80 } do
    for _, dtype in ipairs { "bf16", "f16" } do
      local listed = listed_for(name, dtype)
      for _, d in ipairs(hidden_sizes) do
        for i, format in ipairs(asked_for) do
          assert_listed(listed, format:format(dtype, i % 2 == 0 and 64 or 900, d, dtype, dtype, dtype, dtype), capability)
        end
      end
    end
  end
end

-- The parts that plans choose (choose_parts, runtime/operators/linear/linear_budget.c), and other numbers, of heads that are common where the head is frozen.
function TestList.test_a_frozen_head_s_kernels_are_listed()
  local chosen = {
    { 896, "parts9:narrow" }, { 1536, "parts11" }, { 2048, "parts4" }, { 2048, "parts8" }, { 2304, "parts7" }, { 2560, "parts4:narrow" }, { 3072, "parts4" },
    { 3584, "parts4:narrow" }, { 4096, "parts2" }, { 5120, "parts2:narrow" }, { 6144, "parts2" }, { 7168, "parts2:narrow" }, { 4096, "" }, { 2048, "narrow" },
  }
  for name, capability in pairs { sm_90a = 90, sm_80 = 80 } do
    local listed = listed_for(name, "bf16")
    for _, wanted in ipairs(chosen) do
      for _, n in ipairs { 129, 300, 1024, 8192 } do
        for kind, path in pairs { ["linear_cross_entropy:bf16:n%d:d%d:v131072:gh_bf16:saved_exp"] = "direct",
                                  ["linear_logp_backward:bf16:n%d:d%d:v131072:gh_bf16:forward:saved_exp"] = "in_forward" } do
          assert_listed(listed, kind:format(n, wanted[1]) .. (":%s:%s"):format(path, wanted[2]):gsub(":$", ""), capability)
        end
      end
    end
  end
end

function TestList.test_what_is_left_out_is_said()
  luaunit.assertStrContains(table.concat(fusedlogp.left_out(), "\n"), "hidden sizes other than " .. table.concat(hidden_sizes, ", ") .. "\n")
  luaunit.assertStrContains(fusedlogp.left_out("64,80")[1], "other than 64, 80")
  luaunit.assertStrContains(table.concat(fusedlogp.left_out(), "\n"), "shards of the vocabulary")
end

-- What a prebuild compiles is what selection chooses later.
function TestList.test_a_listed_kernel_is_the_one_that_is_selected()
  for _, capability in ipairs { 80, 89, 90, 100, 120 } do
    local listed = {}
    for _, text in ipairs(support.list(capability == 90 and "sm_90a" or "sm_" .. capability)) do listed[text] = true end
    for _, dtype in ipairs { "bf16", "f16", "f32" } do
      for _, n in ipairs { 1, 64, 100, 128, 129, 100000 } do
        for _, option in ipairs { "", ":argmax" } do
          local problem = ("linear_logp:%s:n%d:d4096:v32000%s"):format(dtype, n, option)
          for _, text in ipairs(support.variants(fusedlogp.select(problem, capability, "auto"))) do
            luaunit.assertTrue(listed[text], ("%s: %s"):format(problem, text))
          end
        end
      end
      for _, n in ipairs { 129, 2048, 4096, 100000 } do
        for _, whole in ipairs { "", ":direct" } do
          local problem = ("linear_logp_backward:%s:n%d:d4096:v32000:gh_%s:gw_%s%s"):format(dtype, n, dtype, dtype, whole)
          for _, text in ipairs(support.variants(fusedlogp.select(problem, capability, "auto"))) do
            luaunit.assertTrue(listed[text], ("%s: %s"):format(problem, text))
          end
        end
      end
    end
  end
end

function TestList.test_the_listed_kernels_leave_saved_exponentials()
  for _, name in ipairs { "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120" } do
    local listed = {}
    for _, text in ipairs(list(name, { "bf16" }, { 4096 }, support.read_template)) do listed[text] = true end
    for _, hint in ipairs { "", ":hidden_first" } do
      local problem = "linear_cross_entropy:bf16:n100000:d4096:v32000:gh_bf16:gw_bf16:saved_exp:direct" .. hint
      for _, text in ipairs(support.variants(fusedlogp.select(problem, tonumber(name:match("%d+")), "auto", "", support.read_template))) do
        luaunit.assertTrue(listed[text], ("%s: %s"):format(problem, text))
      end
    end
  end
end

function TestList.test_what_is_wrong_is_said()
  support.assert_refused({ "arch = sm_75", "sm_80" }, list("sm_75"))
  support.assert_refused({ "dtype = f64", "bf16, f16, f32" }, list("sm_80", { "f64" }))
  support.assert_refused({ "d = 0", "a whole number from 1 to 2147483647" }, list("sm_80", nil, { 0 }))
  support.assert_refused({ "d = 0.5", "a whole number from 1" }, list("sm_80", nil, { 0.5 }))
  support.assert_refused({ "d = wide", "a whole number from 1" }, list("sm_80", nil, { "wide" }))
end

support.run()
