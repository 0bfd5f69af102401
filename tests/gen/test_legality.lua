-- gen/kernels/*.lua: each rule refuses, with a reason that names the field, its value and what is wanted.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local emit = require "gen.emit"
local fusedlogp = require "gen.fusedlogp"
local variant = require "gen.variant"

TestLegality = {}

local hopper = {
  operator = "linear_logp", dtype = "bf16", d = 4096, bm = 128, bv = 256, s = 160, cluster = 2, stages = 4, arch = "sm_90a",
}
local portable = {
  operator = "linear_logp", dtype = "bf16", d = 4096, bm = 128, bv = 128, s = 80, cluster = 1, stages = 4, arch = "sm_80",
}
local combine = { operator = "linear_logp_combine", bm = 8, arch = "sm_90a" }
local rows = { operator = "linear_logp_backward_rows", arch = "sm_90a" }
local finish = { operator = "linear_logp_backward_finish", out = "bf16", parts = true, arch = "sm_80" }

-- A forward's spec, changed to one of the backward's tile kernels with the same tile.
local function product_on(forward)
  return support.with(forward, { operator = "matrix_product", d = support.none, s = support.none, out = "f32" })
end
local function gradients_on(forward) return support.with(forward, { operator = "linear_logp_grad_logits", s = support.none }) end
local function saved_exp_on(forward) return support.with(forward, { operator = "linear_logp_save_exp" }) end

-- A cluster of 512 rows, which only the forward may have.
local tall = { bm = 256, wg = 128, bv = 192, cluster = 2, stages = 3 }

local function assert_all_refused(base, cases)
  local emit = require "gen.emit"
  luaunit.assertTrue(emit.check(base))
  for _, case in ipairs(cases) do support.assert_refused({ case[2], case[3] }, emit.check(support.with(base, case[1]))) end
end

-- Every refusal of the kernel has a case.
local function assert_covered(path, base, cases)
  luaunit.assertEquals(support.refusals_missed(path, function() assert_all_refused(base, cases) end), "")
end

function TestLegality.test_each_rule_of_the_hopper_kernel_refuses()
  assert_covered("gen/kernels/linear_logp_hopper.lua", hopper, {
    { { exact = true }, "exact", "portable kernel" },
    { { dtype = "f32", dv = true }, "dv", "portable kernel" },
    { { dtype = "f32", bv = 192 }, "bv = 192", "a multiple of 8 up to 168" },
    { { vec = 8 }, "vec = 8", "16 bytes" },
    { { bm = 32 }, "bm = 32", "64 or 128" },
    { { bm = 192 }, "bm = 192", "64 or 128" },
    { { wg = 64 }, "wg = 64", "128, and not of fp32" },
    { { wg = 128, dtype = "f32", bv = 128 }, "wg = 128", "not of fp32" },
    { { wg = 128, bm = 64, bv = 192 }, "bm = 64", "with wg = 128 a multiple of it" },
    { { wg = 128 }, "bv = 256", "a multiple of 8 up to 192" },
    { { bv = 100 }, "bv = 100", "a multiple of 8 up to 256" },
    { { bv = 168 }, "bv = 168", "a multiple of 16 for c = 2" },
    { { bv = 320 }, "bv = 320", "a multiple of 8 up to 256" },
    { { dv = true, bv = 96 }, "bv = 96", "a multiple of 64 up to 256" },
    { { cluster = 3 }, "c = 3", "1 or 2" },
    { support.with(tall, { operator = "linear_logp_save_exp" }), "bm = 256", "at most 256 rows in c = 2 blocks" },
    { { dv = true, bv = 64 }, "bv = 64", "a multiple of 128" },
    { { dv = true, bv = 192 }, "c = 2", "a multiple of 128" },
    { { s = 3 }, "s = 3", "at least 4" },
    { { stages = 1 }, "p = 1", "at least 2" },
    { { stages = 5 }, "p = 5", "246784 bytes of shared memory, a block has 232448" },
  })
end

function TestLegality.test_a_forward_without_gradients_may_have_a_tall_cluster()
  luaunit.assertTrue(require("gen.emit").check(support.with(hopper, tall)))
end

function TestLegality.test_each_rule_of_the_hopper_product_refuses()
  assert_covered("gen/kernels/matrix_product_hopper.lua", product_on(hopper), {
    { { dtype = "f32" }, "f32", "only along the inner size" },
    { { vec = 8 }, "vec = 8", "16 bytes" },
    { { bm = 192 }, "bm = 192", "64 or 128" },
    { { bv = 192 }, "bv = 192", "128 or 256" },
    { { bv = 384 }, "bv = 384", "128 or 256" },
    { { cluster = 3 }, "c = 3", "1 or 2" },
    { { stages = 1 }, "p = 1", "at least 2" },
    { { stages = 5 }, "p = 5", "279552 bytes of shared memory, a block has 232448" },
    { { bm = 64, wg = 128, bv = 128 }, "bm = 64, wg = 128", "128 rows for each warpgroup" },
    { { wg = 64, bv = 128 }, "bm = 128, wg = 64", "128 rows for each warpgroup" },
    { { wg = 128, bv = 256 }, "bv = 256", "128 or 192" },
    { { wg = 128, bv = 192, cluster = 2, targets = "of_rows" }, "bv = 192", "more accumulators than registers" },
    { { wg = 128, bv = 192, cluster = 1, b_transposed = true, targets = "in_columns", out = "bf16" }, "bv = 192", "in columns" },
    { { wg = 128, bv = 192, cluster = 2, b_transposed = true, targets = "in_columns", out = "f32" }, "bv = 192", "store 16 bits" },
    { { wg = 128, bv = 192, cluster = 2, b_transposed = true, targets = "in_columns", out = "bf16", ragged = true }, "bv = 192", "within 16 bytes" },
    { { wg = 128, bv = 192, cluster = 2, b_transposed = true, targets = "in_columns", out = "bf16", in_step = true }, "bv = 192", "keep in step" },
    { { wg = 128, bv = 192, cluster = 2, b_transposed = true, targets = "in_rows", out = "f32" }, "bv = 192", "fp32" },
    { { wg = 128, bv = 192, cluster = 2, b_transposed = true, targets = "in_rows", ragged = true }, "bv = 192", "16 bytes" },
    { { wg = 128, bv = 192, cluster = 2, out = "bf16", adds = true, ragged = true }, "c = 2", "rows that end within 16 bytes" },
    { { wg = 128, bv = 192, cluster = 1, a_transposed = true, b_transposed = true, in_step = true, adds = true, targets = "in_rows" }, "c = 1", "keep in step" },
    { { wg = 128, bv = 192, cluster = 1, a_transposed = true, b_transposed = true, in_step = true, ragged = true, targets = "in_rows" }, "c = 1", "within 16" },
    { { wg = 128, bv = 128, filter = true }, "wg = 128", "a filter" },
    { { bv = 64 }, "bv = 64", "with 64 rows" }, { { bm = 64, bv = 64, b_transposed = true, targets = "in_rows" }, "bv = 64", "for grad_hidden" },
    { { parts = true, out = "bf16" }, "parts", "sums in f32" }, { { parts = true, out = "f32", adds = true }, "parts", "overwrite" },
    { { parts = true, out = "f32", in_step = true }, "parts", "steps of the whole inner size" },
    { { filter = true, in_step = true }, "in_step", "a filter" },
    { { slabs = true, in_step = true }, "slabs", "clusters in step" }, { { slabs = true, adds = true, out = "bf16" }, "slabs", "sums in f32" },
    { { slabs = true, out = "f32" }, "slabs", "added to out" }, { { slabs = true, adds = true, out = "f32", targets = "of_rows" }, "slabs", "without targets" },
    { { slabs = true, adds = true, out = "f32", ragged = true }, "slabs", "within 16 bytes" },
    { { slabs = true, a_transposed = true, b_transposed = true, out = "bf16", targets = "in_columns" }, "slabs", "not dlogit" },
    { { wg = 128, bv = 192, cluster = 2, slabs = true, a_transposed = true, b_transposed = true, out = "bf16" }, "bv = 192", "single blocks" },
    { { wg = 128, bv = 192, cluster = 1, slabs = true, a_transposed = true, b_transposed = true, out = "f32" }, "bv = 192", "16 bits" },
  })
end

function TestLegality.test_each_rule_of_the_hopper_gradients_refuses()
  assert_covered("gen/kernels/linear_logp_grad_logits_hopper.lua", gradients_on(hopper), {
    { { dtype = "f32" }, "f32", "only along D" },
    { { exact = true }, "exact", "portable kernel" },
    { { bv = 96 }, "bv = 96", "a multiple of 64 up to 256" },
    { tall, "bm = 256", "at most 256 rows in c = 2 blocks" },
    { { stages = 5 }, "p = 5", "246784 bytes of shared memory, a block has 232448" },
    { { bv = 192, stages = 5 }, "p = 5", "238592 bytes of shared memory, a block has 232448" }, -- with what is stored
  })
end

function TestLegality.test_each_rule_of_saved_exponentials_refuses()
  assert_covered("gen/kernels/linear_logp_save_exp_hopper.lua", saved_exp_on(hopper), {
    { { dtype = "f16" }, "f16", "the range of bf16" },
    { { bv = 96 }, "bv = 96", "a multiple of 64 up to 256" },
    { tall, "bm = 256", "at most 256 rows in c = 2 blocks" },
    { { bv = 192, stages = 5 }, "p = 5", "238592 bytes of shared memory, a block has 232448" }, -- with what is stored
  })
  local offsets = support.with(hopper, { operator = "linear_logp_offsets", bm = 64, bv = 64, cluster = 1, stages = 8, s = support.none })
  assert_covered("gen/kernels/linear_logp_offsets.lua", offsets, {
    { { arch = "sm_90" }, "sm_90", "the portable kernel finds the offsets itself" },
    { { dtype = "f16" }, "f16", "the range of bf16" },
    { { bm = 128 }, "bm = 128", "wanted 64" },
    { { bv = 192 }, "bv = 192", "wanted 64" },
    { { cluster = 2 }, "c = 2", "wanted 1" },
    { { stages = 1 }, "p = 1", "at least 2" },
    { { stages = 15 }, "p = 15", "bytes of shared memory, a block has 232448" },
  })
  assert_covered("gen/kernels/linear_logp_save_exp_portable.lua", saved_exp_on(portable), {
    { { dtype = "f16" }, "f16", "the range of bf16" },
    { { dtype = "f32" }, "f32", "the range of bf16" },
    { { s = 3 }, "s = 3", "at least 4" },
    { { cluster = 2 }, "c = 2", "no clusters" },
  })
end

-- Cases for the rules that the portable tile kernels share. stages: one more than fit; bytes: the shared memory of so many.
local function portable_rules(stages, bytes)
  return {
    { { cluster = 2 }, "c = 2", "no clusters" },
    { { bm = 32 }, "bm = 32", "64 or 128" },
    { { bm = 256 }, "bm = 256", "64 or 128" },
    { { wg = 128 }, "wg = 128", "warps, not warpgroups" },
    { { bv = 256 }, "bv = 256", "128" },
    { { vec = 1 }, "vec = 1", "2, 4 or 8 bytes" },
    { { vec = 32 }, "vec = 32", "2, 4 or 8 bytes" },
    { { vec = 16 }, "vec = 16", "not written" },
    { { filter = true }, "filter", "has none" },
    { { vec = 2, dtype = "f32" }, "vec = 2", "multiples of 4" },
    { { exact = true }, "exact", "f32 only" },
    { { stages = 1 }, "p = 1", "at least 2" },
    { { stages = stages }, "p = " .. stages, bytes .. " bytes of shared memory, a block has 166912" },
  }
end

function TestLegality.test_each_rule_of_the_portable_tile_refuses()
  assert_covered("gen/kernels/portable_tile.lua", portable, portable_rules(10, 167936))
  assert_all_refused(product_on(portable), portable_rules(11, 180224))
  assert_covered("gen/kernels/matrix_product_portable.lua", product_on(portable), {
    { { ragged = true }, "ragged", "each element" }, { { parts = true, out = "bf16" }, "parts", "sums in f32" },
    { { parts = true, out = "f32", targets = "of_rows" }, "parts", "without targets" }, { { slabs = true }, "slabs", "one matrix" },
  })
  assert_all_refused(gradients_on(portable), portable_rules(11, 180224))
end

function TestLegality.test_each_rule_of_the_portable_kernel_refuses()
  assert_covered("gen/kernels/linear_logp_portable.lua", portable, {
    { { s = 3 }, "s = 3", "at least 4" },
    { { stages = 6, arch = "sm_86" }, "p = 6", "102400 bytes of shared memory, a block has 101376" },
  })
end

-- linear_logp_backward_rows has a dtype only if derivatives are scaled, and only fp16 ones are.
function TestLegality.test_each_rule_of_the_small_kernels_refuses()
  luaunit.assertTrue(emit.check(support.with(rows, { dtype = "f16" })))
  luaunit.assertEquals(support.refusals_missed("gen/kernels/helpers.lua", function()
    assert_all_refused(combine, { { { bm = 33 }, "bm = 33", "at most 32" } })
    assert_all_refused(rows, { { { dtype = "bf16" }, "dtype = bf16", "fp16 alone" }, { { dtype = "f32" }, "dtype = f32", "fp16 alone" } })
    assert_all_refused(finish, { { { adds = true }, "parts", "overwrite" }, { { dtype = "bf16" }, "parts", "sums in fp32" } })
  end), "")
end

function TestLegality.test_the_limits_themselves_are_legal()
  local function legal(base, changes)
    local spec = support.with(base, changes)
    local ok, reason = emit.check(spec)
    luaunit.assertTrue(ok, ("%s: %s"):format(variant.format(spec), reason))
  end
  for _, bm in ipairs { 64, 128 } do
    for _, bv in ipairs { 64, 128, 192, 256 } do
      for cluster = 1, 2 do
        legal(hopper, { bm = bm, bv = bv, cluster = cluster, stages = 2, s = 4 })
        if bv % (64 * cluster) == 0 then legal(hopper, { bm = bm, bv = bv, cluster = cluster, dv = true }) end
      end
    end
    for _, vec in ipairs { 2, 4, 8 } do
      legal(portable, { bm = bm, vec = vec, s = 4, stages = 2 })
      legal(product_on(portable), { bm = bm, vec = vec, stages = 2, a_transposed = true, b_transposed = true, adds = true })
      legal(gradients_on(portable), { bm = bm, vec = vec, stages = 2, dv = true })
      legal(saved_exp_on(portable), { bm = bm, vec = vec, s = 4, stages = 2, dv = true, bias = "f32", entropy = true })
    end
  end
  legal(hopper, { bm = 64, stages = 5 })
  legal(hopper, { dtype = "f32", bm = 128, bv = 128, stages = 3 })
  legal(portable, { stages = 9 })
  legal(portable, { dtype = "f32", exact = true, vec = 4 })
  legal(product_on(hopper), { a_transposed = true, b_transposed = true, out = "bf16", adds = true, bv = 128, stages = 6 })
  legal(gradients_on(hopper), { dv = true, bias = "f32", softcap = true, entropy = true })
  legal(product_on(portable), { stages = 10 })
  legal(gradients_on(portable), { dtype = "f32", exact = true, stages = 10 })
  legal(combine, { bm = 1 })
  legal(combine, { bm = 32 })
end

function TestLegality.test_every_other_field_is_free()
  for _, base in ipairs { hopper, portable } do
    for _, d in ipairs { 1, 7, 8, 80, 2304, 2147483647 } do
      for _, bias in ipairs { "bf16", "f16", "f32" } do
        luaunit.assertTrue(emit.check(support.with(base, { d = d, bias = bias, dv = true, softcap = true, argmax = true })))
      end
    end
  end
end

function TestLegality.test_emit_tells_a_malformed_string_from_an_illegal_variant()
  local result, reason, kind = fusedlogp.emit("linear_logp.bf16", support.read_template)
  luaunit.assertEquals({ result, kind }, { nil, "malformed" })
  luaunit.assertStrContains(reason, "linear_logp.bf16: ")

  local text = variant.format(support.with(hopper, { s = 2 }))
  result, reason, kind = fusedlogp.emit(text, support.read_template)
  luaunit.assertEquals({ result, kind }, { nil, "illegal" })
  luaunit.assertEquals(reason, text .. ": s = 2: at least 4")
end

support.run()
