-- gen/select/linear_logp_backward.lua: which kernels are selected for linear_logp's backward on a device, and the reason why not faster ones.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local emit = require "gen.emit"
local fusedlogp = require "gen.fusedlogp"
local variant = require "gen.variant"

TestSelectBackward = {}

local plain = "linear_logp_backward:bf16:n4096:d2048:v131072"

-- The selection, and the specs of its kernels by role.
local function selected(problem, capability, backend)
  local found, reason = fusedlogp.select(problem, capability, backend or "auto", "", support.read_template)
  luaunit.assertNotNil(found, ("%s on %d: %s"):format(problem, capability, reason))
  local specs = support.specs(found)
  for role, spec in pairs(specs) do
    luaunit.assertTrue(emit.check(spec), role)
    luaunit.assertEquals(spec.arch, specs.valid_rows.arch)
  end
  return found, specs
end

-- "role operator" of each kernel.
local function kernels_of(problem, capability)
  local words = {}
  for _, kernel in ipairs(selected(problem, capability).kernels) do
    words[#words + 1] = ("%s %s"):format(kernel.role, variant.parse(kernel.variant).operator)
  end
  return words
end

-- The kernel that counts the kept blocks is there only where a filter skips blocks: on sm_90a.
function TestSelectBackward.test_each_gradient_brings_its_kernels()
  local always = { "valid_rows linear_logp_backward_rows", "gather linear_logp_backward_gather", "grad_logits linear_logp_grad_logits" }
  local hidden = { "hidden_product matrix_product", "hidden_finish linear_logp_backward_finish" }
  local weight = { "weight_product matrix_product", "target_order linear_logp_backward_target_order" }
  local bias, filter = { "bias linear_logp_backward_bias" }, { "filter linear_logp_backward_filter" }
  for _, capability in ipairs { 80, 90 } do
    local counted = capability == 90 and filter or {}
    for options, wanted in pairs {
      [":gh_f32"] = { always, hidden }, [":gw_bf16"] = { always, weight }, [":bias_f32:gb_f32"] = { always, bias },
      [":bias_f32:gh_bf16:gw_bf16:gb_f16"] = { always, hidden, weight, bias }, [":gh_bf16:filter0.01"] = { always, hidden, counted },
      [":bias_f32:gh_bf16:gw_bf16:gb_f16:filter0.01"] = { always, hidden, weight, bias, counted },
    } do
      local words = {}
      for _, part in ipairs(wanted) do table.move(part, 1, #part, #words + 1, words) end
      luaunit.assertItemsEquals(kernels_of(plain .. options, capability), words)
    end
  end
end

-- With its forward, the backward has linear_logp's kernels, too.
function TestSelectBackward.test_a_forward_leaves_saved_exponentials_where_there_is_room()
  for _, capability in ipairs { 80, 90 } do
    for options, tile in pairs { [":forward"] = "tile", [":forward:saved_exp"] = "save_exp_tile", [":forward:saved_exp:direct"] = "save_exp_tile" } do
      local _, specs = selected(plain .. ":gh_bf16" .. options, capability)
      luaunit.assertEquals({ specs[tile].operator, specs.combine.operator, specs[tile == "tile" and "save_exp_tile" or "tile"] },
                           { tile == "tile" and "linear_logp" or "linear_logp_save_exp", "linear_logp_combine" })
    end
  end
end

function TestSelectBackward.test_where_all_exponentials_are_saved_no_logit_is_computed_again()
  for _, capability in ipairs { 80, 90 } do
    for options, has in pairs {
      [":saved_exp"] = true, [":direct"] = true, [":saved_exp:all_saved"] = false, [":saved_exp:direct"] = false, [":saved_exp:direct:hidden_first"] = false,
      [":saved_exp:in_forward"] = false, [":saved_exp:in_forward:narrow"] = false,
    } do
      local _, specs = selected(plain .. ":gh_bf16:gw_bf16:forward" .. options, capability)
      luaunit.assertEquals({ options, specs.grad_logits ~= nil }, { options, has })
    end
  end
end

function TestSelectBackward.test_hopper_takes_its_own_kernels()
  local found = selected(plain .. ":gh_bf16:gw_f32:acc_weight", 90)
  luaunit.assertEquals({ found.path, found.reason }, { "sm_90a", "" })
  luaunit.assertEquals(support.variants(found), {
    "linear_logp_backward_rows.sm_90a",
    "linear_logp_backward_gather.bf16.sm_90a",
    "linear_logp_grad_logits.bf16.d2048.bm128.wg128.bv192.c1.p4.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_f32.adds.sm_90a",
    "linear_logp_backward_finish.w_bf16.out_bf16.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_f32.adds.targets_in_rows.sm_90a",
    "linear_logp_backward_target_order.sm_90a",
  })
end

-- Products have ping-pong tiles where they add chunk by chunk to a main gradient in fp32, and nowhere else.
function TestSelectBackward.test_products_that_add_to_a_main_gradient_take_turns()
  for options, turns in pairs {
    [":gh_bf16:gw_f32:acc_weight"] = { 128, 128 }, [":gh_bf16:gw_f32:acc_weight:direct"] = { 128, 128 }, [":gh_bf16:gw_f32"] = { "none", "none" },
    [":gh_bf16:gw_bf16:acc_weight"] = { "none", "none" }, [":gh_bf16:gw_f32:acc_weight:dv"] = { 128, 128 },
    [":gh_bf16:gw_f32:acc_weight:filter0.01"] = { "none", "none" }, [":gh_bf16:gw_f32:acc_weight:dv:filter0.01"] = { "none", "none" },
  } do
    local found, specs = selected(plain .. options, 90)
    luaunit.assertEquals(found.path, "sm_90a", options)
    luaunit.assertEquals({ specs.hidden_product.wg or "none", specs.weight_product.wg or "none" }, turns, options)
  end
  for _, n in ipairs { 1, 64, 128 } do
    local _, specs = selected(("linear_logp_backward:bf16:n%d:d2048:v131072:gh_bf16:gw_f32:acc_weight"):format(n), 90)
    luaunit.assertEquals({ specs.hidden_product.wg or "none", specs.weight_product.wg or "none" }, { "none", "none" }, n)
  end
end

-- grad_hidden's product has the smaller ping-pong tiles where these fill the waves of an H100 or H200 better, and grad_weight's where its sums are short.
function TestSelectBackward.test_tiles_of_products_follow_the_rows()
  for _, wanted in ipairs {
    { 4096, 2304, ":saved_exp:all_saved", 128, "none" }, { 2048, 3072, ":saved_exp:all_saved", 128, 128 }, { 2048, 2560, ":saved_exp", 128, 128 },
    { 4096, 4096, ":saved_exp:all_saved", "none", "none" }, { 2048, 1024, ":saved_exp:all_saved", "none", 128 },
    { 2048, 512, ":saved_exp:all_saved", 128, 128 }, { 4096, 2304, "", "none", "none" },
    { 2048, 3072, ":saved_exp:direct", "none", 128 }, { 1024, 2048, ":saved_exp:direct:hidden_first", 128, 128 },
    { 2048, 2048, ":saved_exp:direct:hidden_first", "none", "none" }, { 4096, 2048, ":saved_exp:direct:narrow", 128, "none" },
    { 4096, 2048, ":saved_exp:in_forward:narrow", 128, "none" }, { 4096, 2304, ":saved_exp:in_forward", "none", "none" },
    { 256, 2048, ":saved_exp:direct:parts4", 128, 128 }, { 512, 2048, ":saved_exp:direct:parts4", "none", 128 },
    { 512, 2048, ":saved_exp:direct", 128, 128 }, { 1024, 4096, ":saved_exp:in_forward:parts2", "none", 128 },
    { 1024, 1536, ":saved_exp:direct:parts11:narrow", "none", 128 }, { 2048, 4096, ":saved_exp:direct:parts2", "none", 128 },
  } do
    local n, d, hint, hidden, weight = table.unpack(wanted)
    local _, specs = selected(("linear_logp_backward:bf16:n%d:d%d:v131072:gh_bf16:gw_bf16:forward%s"):format(n, d, hint), 90)
    luaunit.assertEquals({ n, d, hint, specs.hidden_product.wg or "none", specs.weight_product.wg or "none" }, wanted)
  end
end

-- 129 to 256 rows share a plan, and 257 to 1024. With parts they have the tile that fills the waves of 256 rows best, or of 512 and 1024.
function TestSelectBackward.test_tiles_of_a_product_in_parts_suit_all_rows_of_a_plan()
  for _, wanted in ipairs {
    { 4096, 2, 128, 256 }, { 2048, 4, 128, 256 }, { 3072, 4, 192, 192 }, { 2560, 4, 192, 128 }, { 5120, 2, 192, 128 }, { 3584, 4, 256, 128 },
    { 2304, 7, 256, 256 }, { 1536, 11, 256, 256 }, { 896, 9, 128, 128 }, { 7168, 2, 256, 128 },
  } do
    local d, parts, fewer, more = table.unpack(wanted)
    for n, columns in pairs { [129] = fewer, [256] = fewer, [257] = more, [700] = more, [1024] = more } do
      local _, specs = selected(("linear_logp_backward:bf16:n%d:d%d:v131072:gh_bf16:forward:saved_exp:direct:parts%d"):format(n, d, parts), 90)
      luaunit.assertEquals({ d, parts, n, specs.hidden_product.bv }, { d, parts, n, columns })
    end
  end
end

-- Products take several slabs of saved exponentials at once where grad_hidden's tiles are one wave that fills more than half of the multiprocessors, or full waves.
-- Where the waves are full, there must be at most half as many rows as D. One number of rows for which that is so suffices for all calls that share the plan.
function TestSelectBackward.test_products_of_blocks_take_slabs()
  for _, wanted in ipairs {
    { 129, 4096, false }, { 256, 7168, true }, { 257, 4096, true }, { 1024, 4096, true }, { 2048, 4096, true }, { 4096, 8192, false }, { 1024, 2048, true }, { 2048, 2048, false }, { 256, 2048, false }, { 257, 2048, true },
    { 2048, 1536, true }, { 1024, 1536, true }, { 512, 2304, true }, { 1024, 2304, true }, { 2048, 2304, false }, { 1024, 1920, false }, { 1024, 1024, false },
    { 128, 8192, false },
  } do
    local n, d, takes = table.unpack(wanted)
    local function of(gradients, hint, capability, operator)
      local problem = ("%s:bf16:n%d:d%d:v131072:%s:saved_exp%s"):format(operator or "linear_cross_entropy", n, d, gradients, hint)
      local _, specs = selected(problem, capability)
      return { n, d, specs.hidden_product and specs.hidden_product.slabs or false, specs.weight_product and specs.weight_product.slabs or false }
    end
    luaunit.assertEquals(of("gh_bf16:gw_bf16", ":all_saved", 90), { n, d, takes, takes })
    luaunit.assertEquals(of("gh_bf16:gw_bf16", ":all_saved", 80), { n, d, false, false })
    luaunit.assertEquals(of("gw_bf16", ":all_saved", 90), { n, d, false, false })
    luaunit.assertEquals(of("bias_bf16:gh_bf16:gw_bf16:gb_bf16", ":all_saved", 90), { n, d, false, false })
    luaunit.assertEquals(of("gh_bf16:gw_bf16", "", 90), { n, d, false, false })
    luaunit.assertEquals(of("gh_bf16:gw_bf16:forward", ":all_saved", 90, "linear_logp_backward"), { n, d, false, false })
  end
end

-- A product in parts writes fp32 sums alone. What adds them writes packed rows, with the targets' contribution, or sums that are finished later.
function TestSelectBackward.test_parts_of_grad_hiddens_product_are_added_by_another_kernel()
  for _, capability in ipairs { 80, 90 } do
    for hint, wanted in pairs {
      [":saved_exp:direct:parts4"] = { "w_bf16.out_bf16.parts", "bf16.out_bf16" }, [":saved_exp:in_forward:parts4"] = { "out_f32.parts", "w_bf16.out_bf16" },
      [":saved_exp:all_saved:parts4"] = { "out_f32.parts", "w_bf16.out_bf16" }, [":saved_exp:direct"] = { "none", "bf16.out_bf16" },
    } do
      local _, specs = selected(("linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:forward%s"):format(hint), capability)
      local product, sum = specs.hidden_product, specs.hidden_sum
      local function of(spec) return spec and variant.format(spec):match("^linear_logp_backward_finish%.(.*)%.sm_") or "none" end
      luaunit.assertEquals({ hint, of(sum), of(specs.hidden_finish) }, { hint, table.unpack(wanted) })
      if sum then luaunit.assertEquals({ product.out, product.parts, product.adds, product.targets }, { "f32", true, nil, nil }, hint) end
    end
  end
end

-- With few rows and grad_hidden alone, the blocks fill the multiprocessors once or twice if they can, and are else fewer.
function TestSelectBackward.test_tiles_of_few_rows_of_a_frozen_head_follow_the_number_of_parts()
  for _, wanted in ipairs {
    { 64, 2048, ":direct:parts4", 64, 64, 1, 8 }, { 64, 2304, ":direct:parts7", 64, 64, 1, 6 }, { 64, 1536, ":direct:parts7", 64, 128, 1, 8 },
    { 128, 2048, ":direct:parts4", 64, 128, 2, 8 }, { 128, 2304, ":direct:parts7", 128, 128, 1, 6 }, { 128, 3584, ":in_forward:parts3", 128, 128, 1, 6 },
    { 64, 5120, ":direct", 64, 64, 1, 8 }, { 128, 8192, ":direct", 64, 128, 2, 8 }, { 64, 12288, ":direct:parts2", 64, 128, 1, 4 },
  } do
    local n, d, hint = table.unpack(wanted)
    local _, specs = selected(("linear_logp_backward:bf16:n%d:d%d:v131072:gh_bf16:forward:saved_exp%s"):format(n, d, hint), 90)
    local product = specs.hidden_product
    luaunit.assertEquals({ n, d, hint, product.bm, product.bv, product.cluster, product.stages }, wanted)
  end
end

function TestSelectBackward.test_other_devices_take_the_portable_kernels_and_say_why()
  for _, capability in ipairs(support.portable_capabilities()) do
    local found, specs = selected(plain .. ":gh_bf16:gw_bf16", capability)
    luaunit.assertEquals({ found.path, specs.gather.arch }, { "portable", "sm_" .. capability })
    luaunit.assertEquals(found.reason,
                         ("not sm_90a: compute capability %d.%d has no WGMMA"):format(capability // 10, capability % 10))
  end
  support.assert_refused({ "not sm_90a: compute capability 7.5", "not portable: compute capability 7.5: kernels exist for" },
                         fusedlogp.select(plain .. ":gh_bf16", 75, "auto"))
end

-- The gradients' products read across D, where WGMMA reads no tf32, in either layout of the weight.
function TestSelectBackward.test_fp32_on_hopper_takes_the_portable_kernels()
  for _, options in ipairs { "", ":dv", ":exact", ":dv:exact" } do
    local found, specs = selected("linear_logp_backward:f32:n100:d512:v1024:gh_f32:gw_f32" .. options, 90)
    luaunit.assertEquals({ found.path, specs.gather.arch }, { "portable", "sm_90" })
    luaunit.assertEquals(found.reason,
                         "not sm_90a: the gradients' products read fp32 across D, and WGMMA reads tf32 only along D")
    for _, role in ipairs { "grad_logits", "hidden_product", "weight_product" } do
      luaunit.assertEquals(specs[role].exact, options:find("exact") and true or nil)
    end
  end
end

-- The bytes of which the weight's address and row stride are multiples, nil for 16. The products' other operands are the backward's own, and always aligned.
local alignments = {
  { "bf16", ":d2048:v50257", nil },
  { "bf16", ":d2044:v50257:ws2048", nil },
  { "bf16", ":d2048:v50257:hs2049", nil }, -- hidden's rows are gathered first
  { "bf16", ":d2044:v50257", 8 },
  { "bf16", ":d2048:v50257:ws2050", 4 },
  { "bf16", ":d2048:v50257:align4", 4 },
  { "f16",  ":d2047:v50257", 2 },
  { "bf16", ":d2048:v50257:dv", 2 },
  { "bf16", ":d2048:v50257:dv:ws50264", nil },
  { "f32",  ":d2046:v50257", 8 },
  { "f32",  ":d2047:v50257", 4 },
}

function TestSelectBackward.test_the_weight_s_alignment_decides_path_and_copies()
  for _, case in ipairs(alignments) do
    local problem = ("linear_logp_backward:%s:n1000%s:gh_f32"):format(case[1], case[2])
    local found, specs = selected(problem, 90)
    luaunit.assertEquals({ problem, specs.grad_logits.vec, specs.hidden_product.vec }, { problem, case[3], case[3] })
    luaunit.assertEquals(found.path, (case[3] or case[1] == "f32") and "portable" or "sm_90a", problem)
    if case[3] and case[1] ~= "f32" then
      luaunit.assertEquals(found.reason,
                           "not sm_90a: TMA wants addresses and row strides in multiples of 16 bytes; weight's are multiples of " .. case[3])
    end
  end
end

-- grad_hidden's sums are dense rows of fp32, which TMA writes.
function TestSelectBackward.test_the_depth_of_grad_hidden_s_sums_decides_the_path()
  for _, layout in ipairs { ":d2047:v50257:ws2048", ":d2047:v50264:dv" } do
    local problem = ("linear_logp_backward:bf16:n1000%s"):format(layout)
    local found = selected(problem .. ":gh_f32", 90)
    luaunit.assertEquals({ found.path, found.reason },
                         { "portable", "not sm_90a: TMA wants row strides in multiples of 16 bytes; those of grad_hidden's fp32 sums are 8188" })
    luaunit.assertEquals(selected(problem .. (layout:find(":dv") and ":gw_bf16" or ":gw_bf16:gws2048"), 90).path, "sm_90a")
  end
end

-- grad_weight is written by TMA on Hopper; the portable kernel writes any rows, and still reads with the widest copies.
function TestSelectBackward.test_grad_weight_s_alignment_decides_the_path()
  for options, bytes in pairs { [":gw_bf16:gws2050"] = 4, [":gw_f32:gws2049"] = 4, [":gw_f32:gws2050"] = 8 } do
    local found, specs = selected(plain .. options, 90)
    luaunit.assertEquals({ found.path, specs.grad_logits.vec, specs.weight_product.vec }, { "portable" })
    luaunit.assertEquals(found.reason,
                         "not sm_90a: TMA wants addresses and row strides in multiples of 16 bytes; grad_weight's are multiples of " .. bytes)
  end
  luaunit.assertEquals(selected(plain .. ":gw_f32:gws2052", 90).path, "sm_90a")
end

function TestSelectBackward.test_addresses_between_elements_have_no_kernel()
  for _, case in ipairs { { "bf16", 1, 2 }, { "f32", 2, 4 } } do
    support.assert_refused(
      { ("not portable: addresses and row strides are multiples of %d bytes, elements have %d"):format(case[2], case[3]) },
      fusedlogp.select(("linear_logp_backward:%s:n1:d8:v8:gh_f32:align%d"):format(case[1], case[2]), 80, "auto"))
  end
end

function TestSelectBackward.test_each_option_reaches_its_kernel()
  for _, capability in ipairs { 80, 90 } do
    local _, specs = selected("linear_logp_backward:f16:n1:d64:v128:dv:bias_f32:softcap30:gh_bf16:gw_f32:gb_f16:acc_hidden:acc_weight:acc_bias" ..
                              ":g_lse:g_entropy", capability)
    local rows, gather, logits, hidden, finish = specs.valid_rows, specs.gather, specs.grad_logits, specs.hidden_product, specs.hidden_finish
    local weight, bias = specs.weight_product, specs.bias
    luaunit.assertEquals({ rows.dtype, gather.dtype, logits.dtype, hidden.dtype, weight.dtype, bias.dtype }, { "f16", "f16", "f16", "f16", "f16", "f16" })
    luaunit.assertEquals({ logits.d, logits.dv, logits.bias, logits.softcap, logits.entropy }, { 64, true, "f32", true, true })
    -- With a [D, V] weight: sums += dlogit . weight^T, and grad_weight [D, V] += hidden^T . dlogit.
    luaunit.assertEquals({ hidden.a_transposed or false, hidden.b_transposed or false, hidden.out, hidden.adds }, { false, false, "f32", true })
    luaunit.assertEquals({ weight.a_transposed, weight.b_transposed, weight.out, weight.adds }, { true, true, "f32", true })
    -- The targets' derivatives are added in the columns of grad_weight, which are vocabulary entries here, and to grad_hidden's sums at the end.
    luaunit.assertEquals({ hidden.targets or "none", finish.weight, finish.dv, weight.targets, specs.target_order.operator },
                         { "none", "f16", true, "in_columns", "linear_logp_backward_target_order" })
    luaunit.assertEquals({ finish.out, finish.adds, bias.out, bias.adds }, { "bf16", true, "f16", true })
    _, specs = selected("linear_logp_backward:f16:n1:d64:v128:bias_f32:gh_f16:gw_f16:gb_f16", capability)
    logits, hidden, finish, weight, bias = specs.grad_logits, specs.hidden_product, specs.hidden_finish, specs.weight_product, specs.bias
    luaunit.assertEquals({ hidden.a_transposed or false, hidden.b_transposed, hidden.adds }, { false, true, true }) -- sums += dlogit . weight
    luaunit.assertEquals({ logits.softcap, logits.entropy, finish.adds, weight.adds, bias.adds }, {})
  end
end

-- A row's grad_hidden must have the same bits in every batch, so the arithmetic of its kernels must not depend on N.
function TestSelectBackward.test_the_bits_of_grad_hidden_never_depend_on_n()
  for _, capability in ipairs { 80, 90 } do
    for _, dtype in ipairs { "bf16", "f32" } do
      local seen
      for _, n in ipairs { 1, 64, 65, 128, 129, 4096, 1 << 31 } do
        local found = selected(("linear_logp_backward:%s:n%d:d2304:v256000:gh_f32"):format(dtype, n), capability)
        local now = found.path
        for _, role in ipairs { "grad_logits", "hidden_product" } do
          now = now .. " " .. fusedlogp.emit(support.variant(found, role), support.read_template).manifest:match("numerics ([^\n]+)")
        end
        seen = seen or now
        luaunit.assertEquals(now, seen)
      end
    end
  end
end

-- Few rows take small tiles. grad_weight's product has as many rows as the vocabulary has entries, whatever N is.
function TestSelectBackward.test_tiles_follow_the_rows_of_what_is_written()
  local function tiles_at(n, capability, layout)
    local _, specs = selected(("linear_logp_backward:bf16:n%d:d2048:v131072%s:gh_bf16:gw_bf16"):format(n, layout or ""), capability)
    local texts = {}
    for i, role in ipairs { "grad_logits", "hidden_product", "weight_product" } do
      texts[i] = ("bm%d c%d%s"):format(specs[role].bm, specs[role].cluster, specs[role].wg and " in turn" or "")
    end
    return texts
  end
  luaunit.assertEquals(tiles_at(64, 90), { "bm64 c1", "bm64 c1", "bm128 c2" })
  luaunit.assertEquals(tiles_at(128, 90), { "bm128 c1", "bm64 c2", "bm128 c2" }) -- grad_hidden has few tiles
  luaunit.assertEquals(tiles_at(129, 90), { "bm128 c1 in turn", "bm128 c2 in turn", "bm128 c2 in turn" })
  luaunit.assertEquals(tiles_at(1024, 90), { "bm128 c1 in turn", "bm128 c2 in turn", "bm128 c2 in turn" })
  luaunit.assertEquals(tiles_at(1025, 90), { "bm128 c1 in turn", "bm128 c2", "bm128 c2 in turn" })
  luaunit.assertEquals(tiles_at(2048, 90), { "bm128 c1 in turn", "bm128 c2", "bm128 c2 in turn" }) -- grad_weight's sums are short
  luaunit.assertEquals(tiles_at(2049, 90), { "bm128 c1 in turn", "bm128 c2", "bm128 c2" })
  luaunit.assertEquals(tiles_at(128, 90, ":dv"), { "bm128 c1", "bm64 c2", "bm128 c2" })
  luaunit.assertEquals(tiles_at(2049, 90, ":dv"), { "bm128 c1 in turn", "bm128 c2 in turn", "bm128 c2 in turn" }) -- adding targets is slow
  for _, n in ipairs { 128, 1024 } do -- a filter's product, which skips steps
    local _, specs = selected(("linear_logp_backward:bf16:n%d:d2048:v131072:gh_bf16:gw_bf16:filter1e-08"):format(n), 90)
    luaunit.assertEquals({ specs.hidden_product.bm, specs.hidden_product.bv, specs.hidden_product.wg }, { 128, 256 })
  end
  luaunit.assertEquals(tiles_at(64, 80), { "bm64 c1", "bm64 c1", "bm128 c1" })
  luaunit.assertEquals(tiles_at(65, 80), { "bm128 c1", "bm128 c1", "bm128 c1" })
end

-- Up to 128 rows, if all exponentials are saved, and no four of grad_hidden's products have room side by side.
function TestSelectBackward.test_blocks_of_wide_products_for_grad_hidden_share_multiprocessors()
  local function stages(n, d, hints)
    local _, specs = selected(("linear_logp_backward:bf16:n%d:d%d:v131072:gh_bf16:gw_bf16%s"):format(n, d, hints), 90)
    luaunit.assertEquals(specs.hidden_product.arch, "sm_90a")
    return specs.hidden_product.stages
  end
  local saved = ":saved_exp:all_saved"
  luaunit.assertEquals({ stages(128, 2048, saved), stages(128, 2056, saved), stages(64, 4096, saved), stages(64, 4104, saved) }, { 8, 4, 8, 4 })
  luaunit.assertEquals({ stages(128, 4096, saved), stages(64, 5120, saved) }, { 4, 4 })
  luaunit.assertEquals({ stages(128, 4096, ""), stages(128, 4096, ":saved_exp"), stages(128, 4096, ":saved_exp:direct") }, { 8, 8, 8 })
end

-- With more than one option there are too few registers.
function TestSelectBackward.test_warpgroups_take_turns_where_registers_allow()
  local function in_turn(options)
    local _, specs = selected("linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16" .. options, 90)
    return specs.grad_logits.wg == 128 and specs.grad_logits.bv == 192
  end
  for _, options in ipairs { "", ":softcap30", ":bias_f32", ":g_entropy", ":dv", ":filter1e-08" } do
    luaunit.assertEquals({ options, in_turn(options) }, { options, true })
  end
  for _, options in ipairs { ":softcap30:bias_f32", ":softcap30:g_entropy", ":bias_bf16:g_entropy" } do
    luaunit.assertEquals({ options, in_turn(options) }, { options, false })
  end
end

support.run()
