-- gen/variant.lua: each variant has exactly one string, and each string at most one variant.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local arch = require "gen.arch"
local variant = require "gen.variant"

TestVariant = {}

local switch = { false, true }
local dtypes = { "bf16", "f16", "f32" }
local largest = 2147483647

-- Calls visit with every linear_logp spec of a grid over all fields. Some are not legal, which their strings do not depend on.
local function each_spec(visit)
  local tiles = { { 64, 256, 160, 1, 5 }, { 128, 128, 80, 2, 10 }, { 1, 9, 10, 99, largest } }
  local function flag(value) return value or nil end
  for i, dtype in ipairs(dtypes) do
    for _, d in ipairs { 1, 4096, largest } do
      for _, tile in ipairs(tiles) do
        for _, bias in ipairs { false, "bf16", "f16", "f32" } do
          for _, vec in ipairs { false, 2, 8 } do
            for bits = 0, 31 do
              visit {
                operator = "linear_logp", dtype = dtype, d = d, bm = tile[1], bv = tile[2], s = tile[3], cluster = tile[4],
                stages = tile[5], dv = flag(bits & 1 ~= 0), bias = flag(bias), softcap = flag(bits & 2 ~= 0),
                argmax = flag(bits & 4 ~= 0), vec = flag(vec), exact = flag(bits & 8 ~= 0), entropy = flag(bits & 16 ~= 0),
                arch = arch.names[(bits + 5 * i + d) % #arch.names + 1],
              }
            end
          end
        end
      end
    end
  end
end

local function same(a, b)
  for name, value in pairs(a) do if b[name] ~= value then return false end end
  for name, value in pairs(b) do if a[name] ~= value then return false end end
  return true
end

function TestVariant.test_parse_is_the_inverse_of_format()
  local count, seen = 0, {}
  each_spec(function(spec)
    local text = variant.format(spec)
    luaunit.assertNil(seen[text])
    seen[text] = true
    local parsed, reason = variant.parse(text)
    luaunit.assertTrue(parsed and same(parsed, spec), ("%s: %s"):format(text, reason or "another spec"))
    count = count + 1
  end)
  luaunit.assertEquals(count, 3 * 3 * 3 * 4 * 3 * 32)
end

function TestVariant.test_the_combine_has_its_own_fields()
  for _, argmax in ipairs(switch) do
    for _, entropy in ipairs(switch) do
      for _, name in ipairs(arch.names) do
        local spec = { operator = "linear_logp_combine", bm = 8, argmax = argmax or nil, entropy = entropy or nil, arch = name }
        luaunit.assertEquals(variant.parse(variant.format(spec)), spec)
      end
    end
  end
end

function TestVariant.test_the_strings_are_these()
  luaunit.assertEquals(variant.format {
    operator = "linear_logp", dtype = "f32", d = 80, bm = 64, bv = 128, s = 108, cluster = 1, stages = 4, dv = true, bias = "f16",
    softcap = true, argmax = true, entropy = true, vec = 4, exact = true, arch = "sm_80",
  }, "linear_logp.f32.d80.bm64.bv128.s108.c1.p4.dv.bias_f16.softcap.argmax.entropy.vec4.exact.sm_80")
  luaunit.assertEquals(variant.format { operator = "linear_logp_combine", bm = 8, arch = "sm_90a" }, "linear_logp_combine.bm8.sm_90a")
end

local samples = {
  "linear_logp.bf16.d4096.bm128.bv256.s132.c2.p4.sm_90a",
  "linear_logp.f32.d80.bm64.bv128.s108.c1.p4.dv.bias_f32.softcap.argmax.vec4.exact.sm_80",
  "linear_logp_combine.bm8.argmax.sm_120a",
  "linear_logp_grad_logits.f16.d80.bm64.bv128.c1.p4.dv.bias_f32.softcap.entropy.vec2.sm_80",
  "matrix_product.f32.bm128.bv128.c1.p4.a_transposed.b_transposed.out_bf16.adds.vec4.exact.sm_90",
  "linear_logp_backward_bias.bf16.out_f32.adds.sm_90a",
}

-- What parse accepts must be exactly what format writes, so an accepted mutant formats to itself.
local function assert_exact(mutant)
  local spec = variant.parse(mutant)
  if spec then luaunit.assertEquals(variant.format(spec), mutant) end
end

function TestVariant.test_a_changed_character_is_another_variant_or_none()
  for _, text in ipairs(samples) do
    luaunit.assertNotNil(variant.parse(text))
    for at = 1, #text + 1 do
      local before, after = text:sub(1, at - 1), text:sub(at + 1)
      assert_exact(before .. after)
      assert_exact(text:sub(1, at) .. text:sub(at))
      for _, c in ipairs { "0", "1", "9", ".", "-", "+", " ", "\n", "\0", "a", "A", "_", "%", "x" } do
        assert_exact(before .. c .. after)
        assert_exact(before .. c .. text:sub(at))
      end
    end
  end
end

local function split(text)
  local parts = {}
  for part in text:gmatch("[^.]+") do parts[#parts + 1] = part end
  return parts
end

function TestVariant.test_two_fields_in_another_order_are_no_variant()
  for _, text in ipairs(samples) do
    local parts = split(text)
    for i = 1, #parts do
      for j = i + 1, #parts do
        local other = table.move(parts, 1, #parts, 1, {})
        other[i], other[j] = parts[j], parts[i]
        luaunit.assertNil(variant.parse(table.concat(other, ".")), table.concat(other, "."))
      end
    end
  end
end

function TestVariant.test_a_missing_or_repeated_field_is_no_variant()
  local parts = split(samples[1])
  for i = 1, #parts do
    local fewer, more = table.move(parts, 1, #parts, 1, {}), table.move(parts, 1, #parts, 1, {})
    table.remove(fewer, i)
    table.insert(more, i, parts[i])
    luaunit.assertNil(variant.parse(table.concat(fewer, ".")))
    luaunit.assertNil(variant.parse(table.concat(more, ".")))
  end
end

function TestVariant.test_what_is_wrong_is_said()
  local cases = {
    { "", "unknown operator" },
    { "linear_loss.bf16.sm_90a", "unknown operator \"linear_loss\"" },
    { "linear_logp", "arch = linear_logp: known are sm_80, sm_86" },
    { "linear_logp_combine.bm8.sm_70", "arch = sm_70: known are sm_80, sm_86" },
    { "linear_logp_combine.bm8.sm_90A", "arch = sm_90A" },
    { "linear_logp_combine.bm8.sm_90a.", "arch = :" },
    { "linear_logp_combine.sm_90a", "field 2 is \"\", wanted bm" },
    { "linear_logp_combine.bm08.sm_90a", "field 2 is \"bm08\", wanted bm" },
    { "linear_logp_combine.bm0.sm_90a", "field 2 is \"bm0\", wanted bm" },
    { "linear_logp_combine.bm2147483648.sm_90a", "field 2 is \"bm2147483648\", wanted bm" },
    { "linear_logp_combine.bm99999999999999999999.sm_90a", "wanted bm" },
    { "linear_logp_combine.bm8.dv.sm_90a", "field 3 is \"dv\", which is unknown or out of order" },
    { "linear_logp.bf16.d8.bm64.bv64.s4.c1.p2.argmax.dv.sm_90a", "field 10 is \"dv\", which is unknown or out of order" },
    { "linear_logp.f64.d8.bm64.bv64.s4.c1.p2.sm_90a", "field 2 is \"f64\", wanted dtype" },
    { "linear_logp.bf16.d8.bm64.bv64.s4.c1.p2.bias_f64.sm_90a", "field 9 is \"bias_f64\"" },
  }
  local missed = support.refusals_missed("gen/variant.lua", function()
    local variant = require "gen.variant"
    for _, case in ipairs(cases) do support.assert_refused({ case[1], case[2] }, variant.parse(case[1])) end
  end)
  luaunit.assertEquals(missed, "")
end

support.run()
