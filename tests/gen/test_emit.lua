-- gen/emit.lua: it writes one self-contained source and its manifest, always the same bytes.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local arch = require "gen.arch"
local budget = require "gen.budget"
local emit = require "gen.emit"
local fusedlogp = require "gen.fusedlogp"
local variant = require "gen.variant"

TestEmit = {}

-- Every kernel, product, layout and option.
local samples = {
  "linear_logp.bf16.d2048.bm128.bv256.s132.c2.p4.sm_90a",
  "linear_logp.f16.d80.bm64.bv256.s132.c1.p4.dv.bias_f32.softcap.argmax.sm_90a",
  "linear_logp.bf16.d8.bm64.bv64.s4.c1.p2.bias_bf16.sm_90a",
  "linear_logp.bf16.d80.bm64.bv256.s132.c1.p4.argmax.entropy.sm_90a",
  "linear_logp.f32.d80.bm64.bv128.s108.c1.p4.entropy.sm_80",
  "linear_logp.f32.d512.bm128.bv128.s132.c1.p3.sm_90a",
  "linear_logp.bf16.d2048.bm128.bv128.s108.c1.p4.sm_80",
  "linear_logp.f16.d81.bm64.bv128.s108.c1.p4.dv.bias_f16.softcap.argmax.vec2.sm_120a",
  "linear_logp.f32.d512.bm64.bv128.s108.c1.p4.dv.sm_90",
  "linear_logp.f32.d512.bm128.bv128.s108.c1.p4.argmax.vec4.exact.sm_86",
  "linear_logp_combine.bm8.sm_90a",
  "linear_logp_combine.bm8.argmax.sm_80",
  "linear_logp_combine.bm8.entropy.sm_90a",
  "linear_logp_shard_targets.sm_80",
  "linear_logp_partials.bm8.argmax.entropy.logit_sum.sm_90a",
  "linear_logp_merge.sm_90a",
  "linear_logp_merge_sums.sm_80",
  "linear_logp_backward_other_shards.sm_90a",
  "logits_logp.bf16.w8.sm_90a",
  "logits_logp.f16.w4.softcap.argmax.entropy.vec2.sm_80",
  "logits_logp.f32.w4.vec4.half.sm_90a",
  "logits_logp_cluster.bf16.c16.w4.softcap.argmax.entropy.vec2.sm_90a",
  "logits_logp_combine.f32.w8.argmax.entropy.sm_90a",
  "logits_logp_gradient.f32.w4.softcap.entropy.vec4.sm_120",
  "logits_logp_fused.bf16.w4.entropy.sm_80",
  "logits_logp_fused_cluster.bf16.c1.w20.sm_90a",
  "logits_logp_fused_cluster.f32.c8.w12.softcap.entropy.sm_90a",
  "linear_logp_backward_rows.sm_90a",
  "linear_logp_backward_rows.f16.sm_80",
  "linear_logp_backward_gather.bf16.sm_80",
  "linear_logp_backward_bias.f32.out_bf16.adds.sm_90",
  "linear_logp_backward_finish.w_bf16.out_f16.sm_90a",
  "linear_logp_backward_finish.w_f32.dv.out_f32.adds.sm_80",
  "linear_logp_backward_finish.bf16.out_bf16.sm_90a",
  "linear_logp_backward_finish.w_bf16.out_bf16.parts.sm_90a",
  "linear_logp_backward_filter.sm_90a",
  "linear_logp_backward_target_order.sm_80",
  "linear_logp_grad_logits.bf16.d2048.bm128.bv256.c2.p4.filter.sm_90a",
  "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed.out_bf16.filter.targets_in_rows.sm_90a",
  "linear_logp_save_exp.bf16.d2048.bm128.bv256.s132.c2.p4.bias_f32.entropy.sm_90a",
  "linear_logp_save_exp.bf16.d81.bm64.bv128.s108.c1.p4.dv.bias_f32.entropy.vec2.sm_120",
  "linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8.dv.bias_bf16.sm_90a",
  "linear_logp.bf16.d2048.bm128.bv256.s132.c2.p4.packed.sm_90a",
  "linear_logp.bf16.d2048.bm128.wg128.bv168.s132.c1.p4.sm_90a",
  "linear_logp.bf16.d2048.bm256.wg128.bv192.s132.c2.p4.sm_90a",
  "linear_logp_grad_logits.bf16.d2048.bm128.bv256.c2.p4.sm_90a",
  "linear_logp_grad_logits.f16.d80.bm64.bv256.c1.p4.dv.bias_f32.softcap.entropy.sm_90a",
  "linear_logp_grad_logits.f16.d81.bm64.bv128.c1.p4.dv.bias_bf16.softcap.entropy.vec2.sm_80",
  "linear_logp_grad_logits.f32.d80.bm128.bv128.c1.p4.exact.sm_90",
  "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed.out_bf16.adds.targets_in_columns.sm_90a",
  "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_bf16.targets_of_rows.sm_90a",
  "matrix_product.bf16.bm64.bv64.c1.p6.b_transposed.out_f32.parts.sm_90a",
  "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.adds.slabs.sm_90a",
  "matrix_product.bf16.bm128.bv128.c1.p4.out_f32.parts.sm_80",
  "matrix_product.f16.bm64.bv128.c1.p4.b_transposed.out_f32.adds.vec2.sm_80",
  "token_loss.loss_policy_gradient.sm_90a",
  "weighted_sum.bf16.w_f32.y_bf16.t128.sm_90",
  "weighted_sum_outer.f32.w_bf16.g_bf16.vec4.sm_80",
  "weighted_sum_tile.bf16.g_bf16.gw_f32.vec2.sm_90a",
  "weighted_sum_combine.gw_f32.sm_90a",
  "scale.bf16.sm_90",
  "matrix_product.f32.bm128.bv128.c1.p4.a_transposed.out_bf16.exact.targets_in_rows.sm_120",
}

local function emitted(text) return assert(fusedlogp.emit(text, support.read_template)) end

local function each_source(visit)
  for _, text in ipairs(samples) do visit(emitted(text).source, text) end
end

-- The named sections that #line directives cut a source into: { name, text }, the banner first.
local function sections(source)
  local found = { { name = "banner", text = "" } }
  for line in source:gmatch("[^\n]*\n") do
    local name = line:match('^#line 1 "([^"]+)"\n$')
    if name then found[#found + 1] = { name = name, text = "" }
    else found[#found].text = found[#found].text .. line end
  end
  return found
end

local function count(text, pattern) return select(2, text:gsub(pattern, "")) end

function TestEmit.test_the_source_is_self_contained()
  each_source(function(source, text)
    luaunit.assertNil(source:find("#%s*include"), text)
    -- The headers that C includes, too, have their include guards, and #ifdef __cplusplus where the languages differ.
    for condition in source:gmatch("#%s*if[^\n]*") do
      local is_guard = condition:find("^#ifndef FLP_PARAMS_[A-Z_]+_H$") ~= nil
      luaunit.assertTrue(is_guard or condition == "#ifdef __cplusplus", text .. ": " .. condition)
    end
    luaunit.assertNil(source:find("[^\n\32-\126]"), text)
    luaunit.assertEquals({ text, source:sub(-1) }, { text, "\n" })
  end)
end

function TestEmit.test_the_banner_names_the_variant()
  each_source(function(source, text) luaunit.assertStrContains(source:match("^[^\n]*"), text) end)
end

-- The banner answers a newcomer's first questions, and lists each part of shared memory with its bytes.
function TestEmit.test_the_banner_says_what_the_kernel_does_and_how_it_is_launched()
  local operators = {}
  for _, text in ipairs(samples) do
    local spec, result = variant.parse(text), emitted(text)
    local lines, head = {}, result.source:match("^(.-)\n#line")
    for line in head:gmatch("[^\n]+") do
      luaunit.assertStrContains(line:sub(1, 2), "//")
      local name = line:match("^// (%u[%a ]*):")
      if name then lines[#lines + 1] = name end
    end
    luaunit.assertEquals({ text, table.concat(lines, ", ") }, { text, "Computes, Grid, Cluster, Block, Shared memory, Parts" })
    local total = 0
    for bytes in head:gmatch("\n// +(%d+)  [^\n]+") do total = total + tonumber(bytes) end
    luaunit.assertEquals({ text, total }, { text, tonumber(result.manifest:match("\nshared_bytes (%d+)\n")) })
    luaunit.assertStrContains(head, ("\n// Cluster: %s\n"):format((spec.cluster or 1) > 1 and spec.cluster .. " blocks" or "none"))
    for _, section in ipairs(sections(result.source)) do
      if section.name:find("/", 1, true) then luaunit.assertStrContains(head, "//   " .. section.name .. " ") end
    end
    operators[spec.operator] = true
  end
  for operator in pairs(variant.operators) do luaunit.assertTrue(operators[operator] or false, operator .. " has no sample") end
end

function TestEmit.test_no_line_is_longer_than_160_characters()
  local function check(text)
    for line in emitted(text).source:gmatch("[^\n]+") do luaunit.assertTrue(#line <= 160, ("%s: %d characters: %s"):format(text, #line, line)) end
  end
  for _, text in ipairs(samples) do
    check(text)
    check(text .. "@host")
  end
end

-- For a plain variant of each kind, the templates that only other variants need.
function TestEmit.test_a_source_holds_no_template_that_its_variant_does_not_use()
  local absent = {
    ["matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.adds.sm_90a"] =
      "target_contribution target_lookahead vector streaming kept_steps kept_blocks split_operands tf32",
    ["matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_bf16.targets_of_rows.sm_90a"] = "target_lookahead vector streaming kept_steps",
    ["matrix_product.bf16.bm128.bv128.c1.p4.b_transposed.out_f32.adds.sm_80"] = "target_contribution exact_product tf32",
    ["linear_logp.bf16.d2048.bm128.bv256.s132.c2.p4.sm_90a"] = "split_operands tf32 tile_store tma_store kept_steps convert turns",
    ["linear_logp.bf16.d2048.bm128.bv128.s108.c1.p4.sm_80"] = "exact_product tf32 tile_store convert",
    ["linear_logp_grad_logits.bf16.d2048.bm128.bv256.c2.p4.sm_90a"] = "kept_blocks kept_steps target_contribution row_statistics schedule",
    ["linear_logp_save_exp.bf16.d2048.bm128.bv256.s132.c2.p4.sm_90a"] = "split_operands kept_steps product_tiles target_contribution",
    ["linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8.sm_90a"] = "split_operands kept_steps tile_store tma_store convert turns tickets softcap",
    ["linear_logp_backward_rows.sm_90a"] = "convert vector",
    ["logits_logp.bf16.w8.sm_90a"] = "shifted_vectors cluster logits_backward",
    ["logits_logp_fused.bf16.w4.sm_90a"] = "shifted_vectors dependent_launch mbarrier",
    ["logits_logp_gradient.bf16.w4.sm_90a"] = "shifted_vectors logits_shared mbarrier",
    ["weighted_sum.bf16.w_f32.y_bf16.t128.sm_90"] = "dependent_launch column_block",
  }
  for text, names in pairs(absent) do
    local present = {}
    for _, section in ipairs(sections(emitted(text).source)) do present[section.name:match("([^/]+)%.cuh$") or section.name] = true end
    for name in names:gmatch("%S+") do luaunit.assertNil(present[name], ("%s has %s"):format(text, name)) end
  end
end

function TestEmit.test_there_is_one_kernel_with_the_manifest_s_name()
  for _, text in ipairs(samples) do
    local result = emitted(text)
    luaunit.assertEquals({ text, count(result.source, 'extern "C"') }, { text, 1 })
    local name = result.manifest:match("\nkernel ([%w_]+)\n")
    luaunit.assertEquals(name, "flp_" .. text:gsub("%.", "_"))
    luaunit.assertEquals({ text, count(result.source, "\n" .. name .. "%(") }, { text, 1 })
  end
end

function TestEmit.test_each_template_stands_there_once_whole_from_its_first_folder()
  for _, text in ipairs(samples) do
    local spec = variant.parse(text)
    local seen, source = {}, emitted(text).source
    for _, section in ipairs(sections(source)) do
      luaunit.assertNil(seen[section.name], section.name)
      seen[section.name] = true
      if section.name:find("%.h$") then
        luaunit.assertEquals(section.text, emit.without_includes(support.read_template(section.name)))
      end
      local file = section.name:match("^templates/[^/]+/([^/]+)%.cuh$")
      if file then
        luaunit.assertEquals(section.text:sub(1, #support.read_template(section.name)), support.read_template(section.name))
        for _, folder in ipairs(arch.find(spec.arch).search) do
          local path = ("templates/%s/%s.cuh"):format(folder, file)
          if support.read_template(path) then
            luaunit.assertEquals(section.name, path)
            break
          end
        end
      end
    end
    luaunit.assertTrue(seen["config"] and seen["entry"] and seen["templates/parts/types.cuh"], text)
  end
end

-- The first of an architecture's templates with this name, or "".
local function template_of(device, name)
  for _, folder in ipairs(device.search) do
    local text = support.read_template(("templates/%s/%s.cuh"):format(folder, name))
    if text then return text end
  end
  return ""
end

function TestEmit.test_an_architecture_can_what_its_templates_do()
  for _, name in ipairs(arch.names) do
    local device = arch.find(name)
    luaunit.assertEquals({ name, device.clusters or false }, { name, template_of(device, "cluster") ~= "" })
    local waits = template_of(device, "dependent_launch"):find("griddepcontrol.wait", 1, true) ~= nil
    luaunit.assertEquals({ name, device.dependent_launch or false }, { name, waits })
  end
end

local wrappers = {}
for line in io.lines(support.srcdir .. "/tests/structure/wrapper_files") do wrappers[line] = true end

function TestEmit.test_assembly_stands_only_in_wrapper_files()
  local found = 0
  each_source(function(source, text)
    for _, section in ipairs(sections(source)) do
      if section.text:gsub("//[^\n]*", ""):find("%f[%w_]asm%f[^%w_]") then
        luaunit.assertTrue(wrappers[section.name], ("%s: asm in %s"):format(text, section.name))
        found = found + 1
      end
    end
  end)
  luaunit.assertTrue(found >= #samples)
end

function TestEmit.test_the_wgmma_wrapper_has_the_variant_s_shape_and_type()
  local function wrapper(text) return emitted(text).source end
  local source = wrapper("linear_logp.f16.d80.bm64.bv192.s132.c1.p4.dv.sm_90a")
  luaunit.assertStrContains(source, "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 ")
  luaunit.assertStrContains(source, "a, b, p, 1, 1, 0, 1;")
  luaunit.assertStrContains(source, "add.s64 a, %96, %99;\\nadd.s64 b, %97, 0;") -- the first step: A's offset is the caller's
  luaunit.assertStrContains(source, "add.s64 a, a, 2;\\nadd.s64 b, %97, 384;") -- the fourth: along K of hidden, across K of the weight
  luaunit.assertEquals(count(source, "a, b, 1, 1, 1, 0, 1;"), 3) -- and steps two to four always accumulate
  luaunit.assertEquals(count(source, '"%+f"%(d%[%d+%]%)'), 2 * 96) -- the product and the wait name every accumulator
  source = wrapper("linear_logp.bf16.d80.bm64.bv64.s132.c1.p4.sm_90a")
  luaunit.assertStrContains(source, "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 ")
  luaunit.assertStrContains(source, "a, b, p, 1, 1, 0, 0;")
  luaunit.assertEquals(count(source, '"%+f"%(d%[%d+%]%)'), 2 * 32)
  source = wrapper("linear_logp.f32.d80.bm64.bv128.s132.c1.p4.sm_90a")
  luaunit.assertStrContains(source, "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 ")
  luaunit.assertStrContains(source, "{%64, %65, %66, %67}, b, p, 1, 1;") -- A from registers, four words a step
  luaunit.assertStrContains(source, "add.s64 b, %80, 6;")
  luaunit.assertStrContains(source, "{%76, %77, %78, %79}, b, 1, 1, 1;")
  luaunit.assertEquals(count(source, '"r"%(a%[%d+%]%)'), 16)
end

function TestEmit.test_a_kernel_carries_only_the_product_it_uses()
  local exact = emitted("linear_logp.f32.d512.bm128.bv128.s108.c1.p4.exact.sm_80").source
  local tensor = emitted("linear_logp.f32.d512.bm128.bv128.s108.c1.p4.sm_80").source
  luaunit.assertStrContains(exact, '"templates/parts/exact_product.cuh"')
  luaunit.assertNil(exact:find("mma.sync.aligned", 1, true))
  luaunit.assertStrContains(tensor, '"templates/sm80/tensor_product.cuh"')
  luaunit.assertStrContains(tensor, "mma.sync.aligned")
  luaunit.assertNil(tensor:find("templates/parts/exact_product", 1, true))
end

function TestEmit.test_a_missing_template_is_an_error_that_names_it()
  local function none() return nil end
  local function headers(path) return path:find("%.h$") and support.read_template(path) end
  luaunit.assertErrorMsgContains("there is no templates/params/types.h", fusedlogp.emit, "linear_logp_combine.bm8.sm_80", none)
  luaunit.assertErrorMsgContains("template types is in none of sm80, any, parts", fusedlogp.emit,
                                 "linear_logp_combine.bm8.sm_80", headers)
end

-- The names of the manifest's fields, from C's header, and the characters that each text field has room for, the terminating 0 included.
local function manifest_fields()
  local header = support.read_template("runtime/jit/manifest.h")
  local bytes = { FLP_VARIANT_BYTES = tonumber(header:match("#define FLP_VARIANT_BYTES (%d+)")) }
  local names, room = {}, {}
  local body = header:match("#define FLP_MANIFEST_FIELDS.-\n\n"):gsub("/%*.-%*/", "")
  for kind, name, size in body:gmatch("%f[%w](%u+)%((%l[%w_]*), ([%w_]+)%)") do
    names[#names + 1] = name
    if kind == "TEXT" then room[name] = bytes[size] or tonumber(size) end
  end
  return names, room
end

function TestEmit.test_the_manifest_has_the_header_s_fields_in_order()
  local names = manifest_fields()
  luaunit.assertEquals(#names, 19)
  for _, text in ipairs(samples) do
    local written = {}
    for line in emitted(text).manifest:gmatch("([^\n]*)\n") do written[#written + 1] = line:match("^([%w_]+) [^ ].*$") end
    luaunit.assertEquals(written, names)
  end
end

function TestEmit.test_the_longest_texts_fit_the_manifest()
  local _, room = manifest_fields()
  local longest = "linear_logp.bf16.d2147483647.bm128.bv128.s2147483647.c1.p9.dv.bias_bf16.softcap.argmax.entropy.vec8.sm_100"
  local exact = "linear_logp.f32.d2147483647.bm128.bv128.s2147483647.c1.p6.dv.bias_bf16.softcap.argmax.entropy.vec8.exact.sm_110a"
  local hopper = "linear_logp.bf16.d2147483647.bm128.bv256.s2147483647.c2.p4.dv.bias_bf16.softcap.argmax.entropy.sm_90a"
  for _, text in ipairs { longest, exact, hopper } do
    for line in emitted(text).manifest:gmatch("([^\n]*)\n") do
      local name, value = line:match("^([%w_]+) (.*)$")
      if room[name] then luaunit.assertTrue(#value < room[name], ("%s has %d characters: %s"):format(name, #value, value)) end
    end
  end
end

function TestEmit.test_the_manifest_tells_what_budget_derives()
  for _, text in ipairs(samples) do
    local spec, values, result = variant.parse(text), {}, emitted(text)
    for name, value in result.manifest:gmatch("([%w_]+) ([^\n]*)\n") do values[name] = value end
    local n = emit.kernel_of(spec).derive(spec)
    luaunit.assertEquals({ values.variant, values.arch }, { text, spec.arch })
    for name, wanted in pairs {
      threads = n.threads, shared_bytes = n.shared_bytes, registers = n.registers, cluster = spec.cluster or 1, block_rows = spec.bm or n.block_rows or 0,
      resident_blocks = budget.resident_blocks(n, arch.find(spec.arch)),
      dependent_launch = arch.find(spec.arch).dependent_launch and result.source:find("wait_for_previous_kernel();", 1, true) and 1 or 0,
      block_columns = spec.bv or n.block_columns or 0, block_inner = n.block_inner or 0, n_split = spec.s or 0, a_box_rows = n.a_box_rows or 0,
      b_box_columns = n.b_box_columns or 0, b_box_rows = n.b_box_rows or 0, takes_slabs = spec.slabs and 1 or 0,
    } do
      luaunit.assertEquals({ text, name, values[name] }, { text, name, tostring(wanted) })
    end
  end
end

support.run()
