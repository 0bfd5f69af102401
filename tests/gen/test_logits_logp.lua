-- logits_logp and its backward: which kernels are selected for a problem, and each rule of these kernels.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local fusedlogp = require "gen.fusedlogp"
local variant = require "gen.variant"

TestLogitsLogp = {}

local function kernels(problem, capability, backend)
  local found, reason = fusedlogp.select(problem, capability or 90, backend or "auto")
  luaunit.assertNotNil(found, ("%s: %s"):format(problem, reason))
  return support.variants(found), found
end

local function variant_of(role, problem, ...) return support.variant(select(2, kernels(problem, ...)), role) end

function TestLogitsLogp.test_the_forward_has_a_kernel_for_the_rows_a_combine_and_where_there_are_clusters_one_for_few_rows()
  luaunit.assertEquals(kernels "logits_logp:bf16:n4096:v131072", {
    "logits_logp.bf16.w8.sm_90a", "logits_logp_combine.bf16.w8.sm_90a", "logits_logp_cluster.bf16.c16.w8.sm_90a",
  })
  luaunit.assertEquals(kernels("logits_logp:f16:n4096:v131072:softcap30:argmax:entropy", 89), {
    "logits_logp.f16.w4.softcap.argmax.entropy.sm_89", "logits_logp_combine.f16.w8.softcap.argmax.entropy.sm_89",
  })
  luaunit.assertEquals(kernels "logits_logp:bf16:n4096:v256000:softcap30", {
    "logits_logp.bf16.w4.softcap.sm_90a", "logits_logp_combine.bf16.w8.softcap.sm_90a", "logits_logp_cluster.bf16.c16.w8.softcap.sm_90a",
  })
end

-- 16-bit rows at any address, and those with an entropy, come through shared memory on GPUs that have TMA.
function TestLogitsLogp.test_which_rows_come_through_shared_memory()
  local config = require "gen.kernels.logits_logp_config"
  local function is_staged(text, capability, role) return config.is_staged(variant.parse(variant_of(role or "rows", text, capability))) end
  for _, dtype in ipairs { "bf16", "f16" } do
    luaunit.assertTrue(is_staged(("logits_logp:%s:n4096:v50257"):format(dtype)))
    luaunit.assertTrue(is_staged(("logits_logp:%s:n4096:v131072:entropy"):format(dtype)))
    luaunit.assertFalse(is_staged(("logits_logp:%s:n4096:v131072:argmax"):format(dtype)))
    luaunit.assertFalse(is_staged(("logits_logp:%s:n4096:v131072:entropy"):format(dtype), 80))
    luaunit.assertFalse(is_staged(("logits_logp:%s:n4096:v131072:entropy"):format(dtype), 90, "few_rows"))
  end
  luaunit.assertFalse(is_staged "logits_logp:f32:n4096:v50257")
  luaunit.assertFalse(is_staged "logits_logp:bf16:n4096:v900:entropy") -- a warp holds a row as short as this in registers
end

-- A row's bits follow from the numeric identity of its kernels, which depends neither on N nor on V nor on the logits' address or stride.
function TestLogitsLogp.test_the_kernels_follow_from_no_size_but_that_of_rows_of_half_a_segment()
  for _, n in ipairs { 0, 1, 64, 4096, 1 << 28 } do
    for _, v in ipairs { 513, 50264, 131072, 2147483640 } do
      luaunit.assertEquals(kernels(("logits_logp:f32:n%d:v%d:ls2147483648"):format(n, v)), kernels "logits_logp:f32:n1:v1024")
    end
    for _, v in ipairs { 1, 512 } do
      luaunit.assertEquals(variant_of("rows", ("logits_logp:f32:n%d:v%d:ls2147483648"):format(n, v)), "logits_logp.f32.w8.half.sm_90a")
    end
  end
end

function TestLogitsLogp.test_kernels_of_one_dtype_have_one_identity()
  local function numerics(text) return fusedlogp.emit(text, support.read_template).manifest:match("\nnumerics ([^\n]+)") end
  local wanted = numerics "logits_logp.bf16.w8.sm_90a"
  for _, text in ipairs { "logits_logp.bf16.w8.half.sm_90a", "logits_logp.bf16.w4.vec2.sm_80", "logits_logp_cluster.bf16.c16.w8.sm_90a" } do
    luaunit.assertEquals(numerics(text), wanted, text)
  end
end

-- Whole vectors are read wherever a row begins; if not all rows begin at a multiple of 16 bytes, the vectors are shifted.
function TestLogitsLogp.test_rows_at_any_address_are_shifted()
  local shifted = { v8 = false, v4 = true, v2 = true, v1 = true, ["v8:align8"] = true, ["v8:align2"] = true, ["v1:ls8"] = false, ["v8:ls12"] = true }
  local function vec_of(role, problem) return variant.parse(variant_of(role, problem)).vec end
  for options, is_shifted in pairs(shifted) do
    local backward = "logits_logp_backward:bf16:n1:" .. options:gsub("ls(%d+)", "ls%1:gs%1")
    for _, role in ipairs { "rows", "few_rows" } do
      luaunit.assertEquals(vec_of(role, "logits_logp:bf16:n1:" .. options), is_shifted and 2 or nil, options)
    end
    luaunit.assertEquals(vec_of("gradient", backward), is_shifted and 2 or nil, options)
  end
  luaunit.assertEquals(vec_of("gradient", "logits_logp_backward:bf16:n1:v8:gs12"), 2)
  luaunit.assertEquals(vec_of("gradient", "logits_logp_backward:f32:n1:v5"), 4)
  support.assert_refused({ "multiples of 2 bytes, elements have 4" }, fusedlogp.select("logits_logp:f32:n1:v8:align2", 90, "auto"))
end

function TestLogitsLogp.test_a_backward_that_knows_lse_is_one_kernel()
  luaunit.assertEquals(kernels "logits_logp_backward:bf16:n4096:v131072", { "logits_logp_gradient.bf16.w3.sm_90a" })
end

-- The cluster has so many blocks that each warp has one segment of 4 KiB. A row that fills no more than half of one block, or does not fit in eight, has no
-- cluster.
function TestLogitsLogp.test_a_fused_row_takes_a_cluster_that_holds_it()
  local cases = {
    { "bf16:n4096:v1024", "logits_logp_fused.bf16.w4" }, { "bf16:n4096:v16384", "logits_logp_fused.bf16.w4" },
    { "bf16:n4096:v16392", "logits_logp_fused_cluster.bf16.c1.w20" }, { "bf16:n4096:v32768", "logits_logp_fused_cluster.bf16.c1.w20" },
    { "bf16:n4096:v32776", "logits_logp_fused_cluster.bf16.c2.w20" }, { "bf16:n4096:v131072", "logits_logp_fused_cluster.bf16.c4.w20" },
    { "f32:n4096:v151936", "logits_logp_fused_cluster.f32.c8.w17" }, { "f32:n4096:v393216", "logits_logp_fused_cluster.f32.c8.w17" },
    { "f32:n4096:v393220", "logits_logp_fused.f32.w4" }, { "bf16:n4096:v16383", "logits_logp_fused.bf16.w4.vec2" },
    { "bf16:n4096:v50257", "logits_logp_fused_cluster.bf16.c2.w20.vec2" }, { "f32:n4096:v50257", "logits_logp_fused_cluster.f32.c4.w16.vec4" },
    { "bf16:n4096:v131072:gs131073", "logits_logp_fused_cluster.bf16.c4.w20.vec2" },
    { "bf16:n4096:v131072:softcap30", "logits_logp_fused_cluster.bf16.c4.w17.softcap" },
    { "bf16:n4096:v131072:softcap30:entropy", "logits_logp_fused_cluster.bf16.c4.w17.softcap.entropy" },
    { "bf16:n4096:v50257:softcap30", "logits_logp_fused_cluster.bf16.c2.w16.softcap.vec2" },
    { "bf16:n4096:v50257:softcap30:entropy", "logits_logp_fused_cluster.bf16.c2.w8.softcap.entropy.vec2" },
    { "f32:n4096:v50257:softcap30", "logits_logp_fused_cluster.f32.c4.w16.softcap.vec4" },
    { "bf16:n4096:v131072:entropy", "logits_logp_fused_cluster.bf16.c4.w16.entropy" },
  }
  for _, case in ipairs(cases) do
    luaunit.assertEquals(#kernels("logits_logp_backward:" .. case[1] .. ":fused"), 5)
    luaunit.assertEquals(variant_of("fused", "logits_logp_backward:" .. case[1] .. ":fused"), case[2] .. ".sm_90a", case[1])
  end
  luaunit.assertEquals(variant_of("fused", "logits_logp_backward:bf16:n4096:v131072:fused", 90, "portable"), "logits_logp_fused.bf16.w4.sm_90")
end

-- Whether the backward is fused or computes the forward first, a row's results have the bits of the forward.
function TestLogitsLogp.test_a_fused_backward_has_the_forwards_kernels_too()
  for _, role in ipairs { "rows", "combine", "few_rows" } do
    local forward = variant_of(role, "logits_logp:bf16:n1:v131072:entropy")
    luaunit.assertNotNil(forward, role)
    luaunit.assertEquals(variant_of(role, "logits_logp_backward:bf16:n1:v131072:entropy:fused"), forward)
  end
end

function TestLogitsLogp.test_why_a_path_is_not_taken_is_said()
  for _, problem in ipairs { "logits_logp:bf16:n1:v8", "logits_logp_backward:bf16:n1:v8" } do
    local _, found = kernels(problem, 80)
    luaunit.assertEquals({ found.path, found.reason }, { "portable", "not sm_90a: compute capability 8.0 is not 9.0" })
    support.assert_refused({ "not portable: compute capability 7.5" }, fusedlogp.select(problem, 75, "auto"))
  end
end

local rows = { operator = "logits_logp", dtype = "bf16", w = 8, arch = "sm_90a" }
local few = { operator = "logits_logp_cluster", dtype = "bf16", cluster = 16, w = 8, arch = "sm_90a" }
local cluster = { operator = "logits_logp_fused_cluster", dtype = "bf16", cluster = 4, w = 17, arch = "sm_90a" }

local function assert_all_refused(base, cases)
  local emit = require "gen.emit"
  luaunit.assertTrue(emit.check(base))
  for _, case in ipairs(cases) do support.assert_refused({ case[2], case[3] }, emit.check(support.with(base, case[1]))) end
end

local function assert_covered(path, base, cases)
  luaunit.assertEquals(support.refusals_missed(path, function() assert_all_refused(base, cases) end), "")
end

function TestLogitsLogp.test_each_rule_refuses()
  luaunit.assertEquals(support.refusals_missed("gen/kernels/logits_logp_config.lua", function()
    assert_all_refused(rows, {
      { { vec = 16 }, "vec = 16", "wanted 2" }, { { vec = 2, dtype = "f32" }, "vec = 2", "wanted 4" }, { { w = 64 }, "w = 64", "at most 32" },
      { { w = 32, argmax = true, entropy = true }, "w = 32", "463360 bytes of shared memory, a block has 232448" },
      { { w = 16, argmax = true, entropy = true, arch = "sm_86" }, "w = 16", "a block has 101376" },
    })
    for _, operator in ipairs { "logits_logp_gradient", "logits_logp_fused" } do
      assert_all_refused(support.with(rows, { operator = operator }), { { { argmax = true }, "argmax", "a gradient has none" } })
    end
  end), "")
  assert_covered("gen/kernels/logits_logp.lua", rows, { { { w = 12 }, "w = 12", "a power of two" } })
  assert_covered("gen/kernels/logits_logp_cluster.lua", few, {
    { { arch = "sm_80" }, "sm_80", "no clusters" }, { { cluster = 1 }, "c = 1", "2, 4, 8 or 16" },
  })
  assert_covered("gen/kernels/logits_logp_fused_cluster.lua", cluster, {
    { { arch = "sm_80" }, "sm_80", "no clusters" }, { { argmax = true }, "argmax", "a gradient has none" },
    { { cluster = 3 }, "c = 3", "1, 2, 4 or 8" },
  })
end

-- What a prebuild compiles is what selection chooses later.
function TestLogitsLogp.test_a_listed_kernel_is_the_one_that_is_selected()
  local listed = {}
  for _, text in ipairs(support.list("sm_90a")) do listed[text] = true end
  for _, dtype in ipairs { "bf16", "f16", "f32" } do
    for _, problem in ipairs { "logits_logp:%s:n100:v50264", "logits_logp:%s:n1:v2000:argmax", "logits_logp:%s:n1:v2000:entropy",
                               "logits_logp_backward:%s:n1:v8", "logits_logp_backward:%s:n4096:v131072:fused" } do
      for _, text in ipairs(kernels(problem:format(dtype))) do luaunit.assertTrue(listed[text], text) end
    end
  end
end

support.run()
