-- gen/select.lua: which kernels are selected for a problem on a device, and the reason why not faster ones.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local arch = require "gen.arch"
local emit = require "gen.emit"
local fusedlogp = require "gen.fusedlogp"
local variant = require "gen.variant"

TestSelect = {}

local plain = "linear_logp:bf16:n4096:d2048:v131072"

-- The selection and the tile kernel's fields.
local function selected(problem, capability, backend)
  local found, reason = fusedlogp.select(problem, capability, backend or "auto")
  luaunit.assertNotNil(found, ("%s on %d: %s"):format(problem, capability, reason))
  luaunit.assertEquals(#found.kernels, 2)
  local specs = support.specs(found)
  local tile, combine = specs.tile, specs.combine
  luaunit.assertTrue(emit.check(tile))
  luaunit.assertTrue(emit.check(combine))
  luaunit.assertEquals({ combine.operator, combine.arch, combine.argmax, combine.entropy },
                       { "linear_logp_combine", tile.arch, tile.argmax, tile.entropy })
  return found, tile
end

function TestSelect.test_hopper_takes_its_own_path()
  local found, tile = selected(plain, 90)
  luaunit.assertEquals({ found.path, found.reason, tile.arch }, { "sm_90a", "", "sm_90a" })
  luaunit.assertEquals(support.variants(found), { "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.sm_90a", "linear_logp_combine.bm8.sm_90a" })
end

function TestSelect.test_other_devices_take_the_portable_path_and_say_why()
  for _, capability in ipairs(support.portable_capabilities()) do
    local found, tile = selected(plain, capability)
    luaunit.assertEquals({ found.path, tile.arch }, { "portable", "sm_" .. capability })
    luaunit.assertEquals(found.reason,
                         ("not sm_90a: compute capability %d.%d has no WGMMA"):format(capability // 10, capability % 10))
  end
end

function TestSelect.test_an_unknown_device_has_no_kernel_and_each_path_says_why()
  for _, capability in ipairs { 70, 75, 88, 130 } do
    local name = ("compute capability %d.%d"):format(capability // 10, capability % 10)
    support.assert_refused({ "not sm_90a: " .. name .. " has no WGMMA", "not portable: " .. name .. ": kernels exist for sm_80, " },
                           fusedlogp.select(plain, capability, "auto"))
  end
end

-- What is written in C, in Lua and in the documents, because none of these reads another.
function TestSelect.test_numbers_that_c_has_too_are_c_s()
  local function of(path, pattern)
    return assert(support.read_template(path):match(pattern), path .. ": " .. pattern)
  end
  local select_backward, budget = "gen/select/linear_logp_backward.lua", "runtime/operators/linear/linear_budget.c"
  for _, pair in ipairs {
    { "gen/model.lua", "long_row_bytes = (%d+) << 20, %d+", "runtime/operators/linear/matrix_product_launch.c", "group_bytes = INT64_C%((%d+)%) << 20" },
    { "gen/model.lua", "long_row_bytes = %d+ << 20, (%d+)", "runtime/operators/linear/matrix_product_launch.h", "FLP_LONG_ROW_BYTES = (%d+)" },
    { select_backward, "columns = 192, percent = (%d+)", budget, "MIDDLE_TILE_PERCENT = (%d+)" },
    { select_backward, "columns = 128, percent = (%d+)", budget, "NARROW_TILE_PERCENT = (%d+)" },
    { select_backward, "local multiprocessors = (%d+)", budget, "MULTIPROCESSORS = (%d+)" },
  } do
    luaunit.assertEquals(of(pair[1], pair[2]), of(pair[3], pair[4]), pair[2])
  end
end

-- What a frozen head's workspace takes at most, in MiB, as tests/runtime/test_linear_budget.c checks it.
function TestSelect.test_documents_have_the_bounds_that_are_tested()
  local test = assert(support.read_template("tests/runtime/test_linear_budget.c"))
  local vocab, large, usual = assert(test:match("> (%d+) %? (%d+) : (%d+)%) << 20, relative"))
  local relative = assert(test:match("relative = elements %* 2 %+ %((%d+) << 20%)"))
  for path, words in pairs {
    ["docs/c.md"] = { usual .. " MiB, or " .. large .. " MiB where V is above " .. vocab, relative .. " MiB" },
    ["runtime/fusedlogp.h"] = { "grad_hidden alone takes up to " .. large .. " MiB", "up to " .. relative .. " MiB" },
    ["docs/python_training.md"] = { "up to " .. large .. " MiB of workspace" }, ["docs/python_rl.md"] = { "a frozen head at most " .. large .. " MiB" },
  } do
    local text = assert(support.read_template(path)):gsub("%s+%*?%s*", " ")
    for _, wanted in ipairs(words) do luaunit.assertStrContains(text, wanted, false, path) end
  end
end

function TestSelect.test_buckets_are_those_of_c()
  local ends = {}
  for rows in assert(support.read_template("runtime/core/row_buckets.h")):gmatch("if %(rows <= (%d+)%)") do ends[#ends + 1] = rows end
  luaunit.assertEquals(#ends, 4)
  local words = ("up to %s, %s, %s and %s"):format(table.unpack(ends))
  for _, path in ipairs { "docs/operating.md", "man/fusedlogp-tune.1" } do luaunit.assertStrContains(support.read_template(path), words, false, path) end
  local of_few = assert(support.read_template("gen/select/linear_logp_backward.lua")):match("local buckets_of_few = (%b{})")
  luaunit.assertStrContains(of_few, "{ most = " .. ends[3] .. ", ")
  luaunit.assertStrContains(of_few, "{ most = " .. ends[4] .. ", ")
end

function TestSelect.test_ptx_is_for_newer_gpus()
  for _, capability in ipairs { 87, 90, 120, 130 } do
    local found, tile = selected(plain, capability, "ptx")
    luaunit.assertEquals({ found.path, tile.arch, found.reason }, { "portable", "sm_86", "PTX of sm_86, which the driver compiles" })
  end
  for _, capability in ipairs { 75, 80, 86 } do
    support.assert_refused({ "PTX of sm_86 is for GPUs of a compute capability above 8.6" }, fusedlogp.select(plain, capability, "ptx"))
  end
end

-- A block of any newer GPU has at least the shared memory that these kernels take.
function TestSelect.test_ptx_fits_every_gpu()
  local name = fusedlogp.ptx_architecture()
  for _, other in pairs(arch.table) do luaunit.assertTrue(other.shared_bytes >= arch.table[name].shared_bytes) end
end

function TestSelect.test_a_backend_is_that_or_nothing()
  local found = selected(plain, 90, "portable")
  luaunit.assertEquals({ found.path, found.reason }, { "portable", "" })
  luaunit.assertEquals(selected(plain, 90, "sm_90a").path, "sm_90a")
  local result, reason = fusedlogp.select(plain, 80, "sm_90a")
  luaunit.assertEquals({ result, reason }, { nil, "not sm_90a: compute capability 8.0 has no WGMMA" })
end

function TestSelect.test_a_malformed_problem_is_refused()
  support.assert_refused({ "problem \"nonsense\"" }, fusedlogp.select("nonsense", 90, "auto"))
end

function TestSelect.test_fp32_takes_the_path_that_can_multiply_it()
  local found, tile = selected("linear_logp:f32:n64:d512:v1024", 90)
  luaunit.assertEquals({ found.path, tile.arch, tile.exact, tile.bv }, { "sm_90a", "sm_90a", nil, 168 })
  found, tile = selected("linear_logp:f32:n64:d512:v1024:dv", 90)
  luaunit.assertEquals({ found.path, tile.arch, tile.exact, tile.dv }, { "portable", "sm_90", nil, true })
  luaunit.assertEquals(found.reason, "not sm_90a: WGMMA reads tf32 only along D, and the weight is [D, V]")
  found, tile = selected("linear_logp:f32:n64:d512:v1024:exact", 90)
  luaunit.assertEquals({ found.path, tile.exact }, { "portable", true })
  luaunit.assertEquals(found.reason, "not sm_90a: exact fp32 takes no tensor cores")
end

-- The bytes of which addresses and both row strides are multiples, nil for 16: TMA needs 16, and the portable kernel copies so many at once.
local alignments = {
  { "bf16", ":d2048:v50257", nil },
  { "bf16", ":d2048:v50257:hs2056", nil },
  { "bf16", ":d1:v100:hs8:ws8", nil },
  { "bf16", ":d2044:v50257", 8 },
  { "bf16", ":d2048:v50257:hs2052", 8 },
  { "bf16", ":d2048:v50257:ws2050", 4 },
  { "bf16", ":d2048:v50257:align8", 8 },
  { "bf16", ":d2048:v50257:align4", 4 },
  { "f16",  ":d2048:v50257:align2", 2 },
  { "f16",  ":d2047:v50257", 2 },
  { "bf16", ":d2048:v50257:dv", 2 },
  { "bf16", ":d2047:v50264:dv:hs2048", nil },
  { "bf16", ":d2048:v50257:dv:ws50264", nil },
  { "f32",  ":d2044:v50257", nil },
  { "f32",  ":d2046:v50257", 8 },
  { "f32",  ":d2047:v50257", 4 },
  { "f32",  ":d2048:v50257:align4", 4 },
}

-- A tensor map's rows lie less than 2^40 bytes apart.
function TestSelect.test_rows_too_far_apart_take_the_portable_path()
  for _, problem in ipairs { "linear_logp:bf16:n8:d128:v1000:hs%d", "linear_logp:bf16:n8:d128:v1000:ws%d",
                             "linear_logp_backward:bf16:n8:d128:v1000:ws%d:gh_bf16", "linear_logp_backward:bf16:n8:d128:v1000:gh_bf16:gw_bf16:gws%d" } do
    local function found_with(stride) return assert(fusedlogp.select(problem:format(stride), 90, "auto")) end
    luaunit.assertEquals(found_with((1 << 39) - 8).path, "sm_90a", problem)
    local found = found_with(1 << 39)
    luaunit.assertEquals({ found.path, found.reason }, { "portable", "not sm_90a: TMA wants row strides below 2^40 bytes" }, problem)
  end
end

function TestSelect.test_alignment_decides_path_and_copies()
  for _, case in ipairs(alignments) do
    local found, tile = selected(("linear_logp:%s:n1000%s"):format(case[1], case[2]), 90)
    luaunit.assertEquals({ case[2], tile.vec }, { case[2], case[3] })
    luaunit.assertEquals(found.path, case[3] and "portable" or "sm_90a", case[2])
    if case[3] then
      luaunit.assertEquals(found.reason, "not sm_90a: TMA wants addresses and row strides in multiples of 16 bytes; here they are multiples of " .. case[3])
    end
  end
end

function TestSelect.test_addresses_between_elements_have_no_kernel()
  for _, case in ipairs { { "bf16", 1, 2 }, { "f32", 2, 4 } } do
    support.assert_refused(
      { ("not portable: addresses and row strides are multiples of %d bytes, elements have %d"):format(case[2], case[3]) },
      fusedlogp.select(("linear_logp:%s:n1:d8:v8:align%d"):format(case[1], case[2]), 80, "auto"))
  end
end

function TestSelect.test_each_option_reaches_the_kernel()
  for _, capability in ipairs { 80, 90 } do
    local _, tile = selected("linear_logp:f16:n1:d64:v128:dv:bias_f32:target_i32:softcap30:argmax:entropy", capability)
    luaunit.assertEquals({ tile.dtype, tile.d, tile.dv, tile.bias, tile.softcap, tile.argmax, tile.entropy },
                         { "f16", 64, true, "f32", true, true, true })
    _, tile = selected("linear_logp:f16:n1:d64:v128", capability)
    luaunit.assertEquals({ tile.dv, tile.bias, tile.softcap, tile.argmax, tile.entropy }, {})
  end
end

local rows = { 0, 1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 4096, 65536, 1 << 20, 1 << 31, 1 << 40 }

-- What decides on a row's bits: the tile's width, the splits and the kernel's numeric identity. They must not depend on N.
local function arithmetic(problem, capability)
  local found, tile = selected(problem, capability)
  local numerics = fusedlogp.emit(support.variant(found, "tile"), support.read_template).manifest:match("numerics ([^\n]+)")
  return table.concat({ found.path, tile.bv, tile.s, tile.arch, numerics, support.variant(found, "combine") }, " ")
end

function TestSelect.test_the_bits_of_a_row_never_depend_on_n()
  for _, capability in ipairs { 80, 90, 120 } do
    for _, case in ipairs { { "bf16", "" }, { "f16", ":dv" }, { "f32", "" }, { "f32", ":dv" }, { "f32", ":exact" }, { "bf16", ":align2:argmax" } } do
      local seen
      for _, n in ipairs(rows) do
        local now = arithmetic(("linear_logp:%s:n%d:d2304:v256000%s"):format(case[1], n, case[2]), capability)
        seen = seen or now
        luaunit.assertEquals(now, seen)
      end
    end
  end
end

function TestSelect.test_the_tile_follows_n()
  local function tile_at(n, capability, dtype)
    local _, tile = selected(("linear_logp:%s:n%d:d2048:v131072"):format(dtype or "bf16", n), capability)
    return ("bm%d c%d p%d"):format(tile.bm, tile.cluster, tile.stages)
  end
  for _, n in ipairs(rows) do
    luaunit.assertEquals(tile_at(n, 90), n <= 64 and "bm64 c1 p6" or n <= 128 and "bm128 c1 p5" or "bm128 c1 p4")
    luaunit.assertEquals(tile_at(n, 90, "f32"), n <= 64 and "bm64 c1 p3" or "bm128 c1 p3")
    luaunit.assertEquals(tile_at(n, 80), n <= 64 and "bm64 c1 p4" or "bm128 c1 p4")
  end
end

-- The tile's width never depends on N, because it decides on a row's bits.
function TestSelect.test_warpgroups_take_turns_where_registers_allow()
  local function columns_at(options, vocab)
    local seen
    for _, n in ipairs { 1, 64, 65, 128, 129, 65536 } do
      local _, tile = selected(("linear_logp:bf16:n%d:d2048:v%d%s"):format(n, vocab or 131072, options), 90)
      luaunit.assertEquals(tile.wg, n > 128 and tile.bv == 168 and 128 or nil)
      luaunit.assertEquals(tile.bv, seen or tile.bv)
      seen = tile.bv
    end
    return seen
  end
  for _, options in ipairs { "", ":softcap30", ":argmax", ":entropy", ":softcap30:argmax:entropy", ":bias_bf16",
                            ":argmax:entropy:bias_bf16", ":bias_f32", ":softcap30:entropy:bias_f32" } do
    luaunit.assertEquals({ options, columns_at(options) }, { options, 168 })
  end
  local _, shared = selected("linear_logp:bf16:n4096:d2048:v131072:softcap30:argmax:bias_bf16", 90)
  luaunit.assertEquals({ shared.wg, shared.bm, shared.bv }, { nil, 128, 168 })
  luaunit.assertEquals(columns_at(":dv"), 256)
  for _, vocab in ipairs { 7, 8192, 32000, 50257, 128256, 262144 } do luaunit.assertEquals({ vocab, columns_at("", vocab) }, { vocab, 168 }) end
end

-- A launch walks as many row groups together as stay in the L2, in groups of equal size.
function TestSelect.test_row_groups_fit_in_half_the_l2()
  for problem, group in pairs { ["n8192:d4096"] = 16, ["n4096:d2048"] = 32, ["n4096:d2304"] = 16, ["n16384:d2048"] = 32, ["n300:d65536"] = 1 } do
    local found = assert(fusedlogp.select(("linear_logp:bf16:%s:v131072"):format(problem), 90, "auto"))
    luaunit.assertEquals({ problem, found.kernels[1].group }, { problem, group })
  end
end

function TestSelect.test_the_largest_sizes_have_kernels()
  for _, capability in ipairs { 80, 90 } do selected("linear_logp:bf16:n1099511627776:d2147483647:v2147483647:align2", capability) end
  selected("linear_logp:bf16:n1:d2147483640:v2147483647", 90)
end

-- Its passes are linear_logp for packed rows and linear_logp_backward, with the options that the loss uses. The loss is between them. Without gradients, only
-- the kernels that pack the rows remain of the backward.
function TestSelect.test_the_cross_entropy_is_both_passes_and_a_loss()
  local function kernels(options, capability)
    local found = assert(fusedlogp.select("linear_cross_entropy:bf16:n4096:d2048:v131072" .. options, capability or 90, "auto", "", support.read_template))
    return table.concat(support.variants(found), " ")
  end
  local function passes(forward, loss, backward)
    local function of(problem) return table.concat(support.variants(fusedlogp.select(problem, 90, "auto")), " ") end
    local text = of("linear_logp:bf16:n4096:d2048:v131072" .. forward):gsub("%.sm_90a", ".packed.sm_90a", 1)
    return ("%s token_loss.loss_%s.sm_90a %s"):format(text, loss, backward and of("linear_logp_backward:bf16:n4096:d2048:v131072" .. backward) or
                                                      "linear_logp_backward_rows.sm_90a linear_logp_backward_gather.bf16.sm_90a")
  end
  luaunit.assertEquals(kernels "", passes("", "cross_entropy"))
  luaunit.assertEquals(kernels ":entropy:gh_bf16:gw_f32:acc_weight:classes_f32", passes(":entropy", "cross_entropy", ":gh_bf16:gw_f32:acc_weight"))
  luaunit.assertEquals(kernels ":gw_bf16:loss_policy_gradient", passes("", "policy_gradient", ":gw_bf16"))
  local smoothed = kernels ":gh_bf16:smoothing:classes_f32"
  luaunit.assertStrContains(smoothed, "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.logit_sum.classes_f32.packed.sm_90a linear_logp_combine.bm8.logit_sum.sm_90a")
  luaunit.assertStrContains(smoothed, "linear_logp_grad_logits.bf16.d2048.bm128.bv256.c2.p4.logit_sum.classes_f32.sm_90a")
  luaunit.assertStrContains(kernels(":gh_bf16", 80), "token_loss.loss_cross_entropy.sm_80 linear_logp_backward_rows.sm_80")
end

-- A plan with room for saved exponentials adds saved_exp to the problem's string.
function TestSelect.test_the_cross_entropy_with_room_for_saved_exponentials()
  local function kernels(options, capability)
    local found = assert(fusedlogp.select("linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16" .. options, capability, "auto", "", support.read_template))
    return table.concat(support.variants(found), " ")
  end
  for capability, words in pairs {
    [80] = { tile = "bm128.bv128.s108.c1.p4", product = "bm128.bv128.c1.p4", arch = "sm_80", step = "", offsets = "" },
    [90] = { tile = "bm128.wg128.bv192.s132.c1.p4", product = "bm128.bv256.c2.p4", arch = "sm_90a", step = ".in_step",
             offsets = "linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8.sm_90a " },
  } do
    local function said(text) return (text:gsub("%u+", { TILE = words.tile, PRODUCT = words.product, ARCH = words.arch, STEP = words.step, OFFSETS = words.offsets })) end
    local saved_exp = said "linear_logp_save_exp.bf16.d2048.TILE.ARCH OFFSETSlinear_logp_combine.bm8.ARCH "
    luaunit.assertStrContains(kernels(":saved_exp", capability), saved_exp)
    luaunit.assertStrContains(kernels(":saved_exp:direct", capability), saved_exp)
    luaunit.assertStrContains(kernels(":saved_exp", capability),
                              said "matrix_product.bf16.PRODUCT.b_transposed.out_f32.adds.ARCH linear_logp_backward_finish.w_bf16.out_bf16.ARCH")
    luaunit.assertStrContains(kernels(":saved_exp:direct", capability),
                              said "matrix_product.bf16.PRODUCT.b_transposed.out_bf16.targets_of_rows.ARCH linear_logp_backward_finish.bf16.out_bf16.ARCH")
    luaunit.assertStrContains(kernels(":saved_exp:direct:hidden_first", capability),
                              said("matrix_product.bf16.PRODUCT.b_transposed.out_bf16STEP.targets_of_rows.ARCH linear_logp_backward_finish.bf16.out_bf16.ARCH "
                                .. "matrix_product.bf16.PRODUCT.a_transposed.b_transposed.out_bf16STEP.targets_in_rows.ARCH"))
  end
end

-- The offsets of saved exponentials are found by a kernel of their own where it can be Hopper's.
function TestSelect.test_offsets_come_from_a_kernel_of_their_own()
  local function offsets(n, capability, options)
    local problem = ("linear_cross_entropy:bf16:n%d:d2048:v131072:gh_bf16:gw_bf16%s"):format(n, options)
    local specs = support.specs(assert(fusedlogp.select(problem, capability, "auto", "", support.read_template)))
    return specs.offsets and variant.format(specs.offsets) or ""
  end
  for options, wanted in pairs { [""] = "", [":dv"] = ".dv", [":bias_f32"] = ".bias_f32" } do
    for _, n in ipairs { 1, 64, 2048, 65536 } do
      luaunit.assertEquals(offsets(n, 90, options .. ":saved_exp"), ("linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8%s.sm_90a"):format(wanted))
    end
    luaunit.assertEquals(offsets(64, 90, options), "")
    luaunit.assertEquals(offsets(64, 80, options .. ":saved_exp"), "")
  end
end

-- The width of copies follows from the weight's rows alone; the packed rows of hidden are always aligned.
function TestSelect.test_saved_exponentials_of_a_weight_that_lies_anyhow()
  for options, vec in pairs { [""] = 16, [":ws2050"] = 4, [":align2"] = 2, [":hs2049"] = 16 } do
    local found = assert(fusedlogp.select("linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:saved_exp" .. options, 80, "auto", "", support.read_template))
    local tile = support.specs(found).save_exp_tile
    luaunit.assertEquals({ tile.operator, tile.vec or 16 }, { "linear_logp_save_exp", vec })
  end
end

-- Packed rows are aligned, even if hidden's own rows are not.
function TestSelect.test_packed_rows_need_no_alignment_of_hiddens_rows()
  for _, gradients in ipairs { ":gh_bf16", "" } do
    local found = fusedlogp.select("linear_cross_entropy:bf16:n4096:d2048:v131072:hs2049" .. gradients, 90, "auto", "", support.read_template)
    luaunit.assertEquals(found.path, "sm_90a")
  end
end

-- Rows are packed whatever their number is, because a row's bits and path must not depend on it.
function TestSelect.test_the_cross_entropy_brings_any_number_of_rows_together()
  for _, capability in ipairs { 80, 90 } do
    for _, dtype in ipairs { "bf16", "f32" } do
      for _, n in ipairs { 1, 64, 128, 4096 } do
        local problem = ("linear_cross_entropy:%s:n%d:d2048:v131072"):format(dtype, n)
        local found = assert(fusedlogp.select(problem, capability, "auto", "", support.read_template))
        luaunit.assertTrue(support.specs(found).tile.packed, problem)
        luaunit.assertEquals(found.path, capability == 90 and "sm_90a" or "portable", problem)
        luaunit.assertEquals(#found.kernels, 5, problem)
      end
    end
  end
end

-- C finds kernels by their roles: C knows every role that is selected, each role is selected for some problem, and none occurs twice in a plan.
function TestSelect.test_roles_are_those_that_c_has()
  local unused, known = {}, 0
  for word in support.read_template("runtime/jit/role.h"):gmatch('%f[%w]X%([%u_]+, "([%l_]+)"%)') do unused[word], known = true, known + 1 end
  luaunit.assertTrue(known > 1)
  for _, problem in ipairs {
    "linear_logp:bf16:n1:d64:v128", "linear_logp_backward:bf16:n1:d64:v128:bias_f32:gh_bf16:gw_bf16:gb_bf16:filter0.01:forward",
    "linear_logp:bf16:n1:d64:v128:of256", "linear_logp_backward:bf16:n1:d64:v128:of256:gh_f32",
    "linear_cross_entropy:bf16:n1:d64:v128", "linear_cross_entropy:bf16:n1:d64:v128:of256:gh_f32:smoothing", "linear_cross_entropy:bf16:n1:d64:v128:gh_bf16:saved_exp", "logits_logp:bf16:n1:v128",
    "linear_cross_entropy:bf16:n1:d64:v128:gh_bf16:saved_exp:direct:parts2",
    "logits_logp_backward:bf16:n1:v128:fused", "weighted_sum:bf16:n1:d8", "weighted_sum_backward:bf16:n1:d8:gx_bf16:gw_bf16",
    "scale:bf16:n1:d8",
  } do
    for _, capability in ipairs { 80, 90 } do
      local seen = {}
      for _, kernel in ipairs(fusedlogp.select(problem, capability, "auto", "", support.read_template).kernels) do
        luaunit.assertNil(seen[kernel.role], problem)
        seen[kernel.role] = true
      end
      for role in pairs(seen) do
        luaunit.assertNotNil(unused[role], ("%s: %s is none of C's roles"):format(problem, role))
        unused[role] = false
      end
    end
  end
  for role, is_unused in pairs(unused) do luaunit.assertFalse(is_unused, role) end
end

-- If one pass has no kernels on a path, neither pass takes that path.
function TestSelect.test_both_passes_take_one_path()
  local found = fusedlogp.select("linear_cross_entropy:f32:n4096:d2048:v131072:gh_f32", 90, "auto", "", support.read_template)
  luaunit.assertEquals(found.path, "portable")
  luaunit.assertStrContains(found.reason, "WGMMA reads tf32 only along D")
  for _, kernel in ipairs(found.kernels) do luaunit.assertEquals(variant.parse(kernel.variant).arch, "sm_90") end
  support.assert_refused({ "not sm_90a", "not portable" },
                         fusedlogp.select("linear_cross_entropy:f32:n1:d8:v8:gh_f32", 75, "auto", "", support.read_template))
end

support.run()
