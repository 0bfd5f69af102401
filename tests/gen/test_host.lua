-- The architectures NAME@host: NAME's kernels as C++ for the host machine (the GPU simulator), with a host implementation of every wrapper file.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local arch = require "gen.arch"
local fusedlogp = require "gen.fusedlogp"
local list = require "gen.list"
local variant = require "gen.variant"

TestHost = {}

local function emitted(text) return assert(fusedlogp.emit(text, support.read_template)) end

-- One variant of each kernel of the architecture: the first one that a prebuild lists.
local function samples(name)
  local seen, found = {}, {}
  for _, text in ipairs(list.variants(name, nil, nil, support.read_template)) do
    local spec = variant.parse(text)
    if not seen[spec.operator] then
      seen[spec.operator] = true
      found[#found + 1] = text
    end
  end
  return found
end

function TestHost:test_a_host_variant_is_the_variant_with_another_architecture()
  local spec = assert(variant.parse("linear_logp_combine.bm8.sm_90a@host"))
  luaunit.assertEquals(spec.arch, "sm_90a@host")
  luaunit.assertEquals(variant.format(spec), "linear_logp_combine.bm8.sm_90a@host")
end

function TestHost:test_only_known_architectures_have_a_host()
  for _, name in ipairs { "sm_70@host", "@host", "sm_90a@host@host", "sm_90a@hos" } do
    local found, reason = arch.find(name)
    luaunit.assertNil(found)
    luaunit.assertStrContains(reason, name)
  end
end

function TestHost:test_the_hosts_kernel_differs_in_wrapper_files_and_entry_alone()
  for _, name in ipairs { "sm_90a", "sm_80" } do
    for _, text in ipairs(samples(name)) do
      local real, host = emitted(text).source, emitted(text .. "@host").source
      for path in host:gmatch('#line 1 "(templates/[^"]+)"') do
        local file = path:match("^templates/host/(.*)$")
        local wanted = file and '#line 1 "templates/%w+/' .. file .. '"' or '#line 1 "' .. path .. '"'
        if file ~= "cuda.cuh" then luaunit.assertNotNil(real:find(wanted), text .. ": " .. path) end
      end
    end
  end
end

function TestHost:test_the_host_sees_no_assembly()
  for _, name in ipairs { "sm_90a", "sm_80" } do
    for _, text in ipairs(samples(name)) do
      luaunit.assertNil(emitted(text .. "@host").source:match("%f[%w_]asm%f[^%w_]"), text)
    end
  end
end

function TestHost:test_manifests_agree_but_for_the_names()
  local function facts(manifest) return manifest:gsub("@host", ""):gsub("_host\n", "\n") end
  for _, text in ipairs(samples("sm_90a")) do
    luaunit.assertEquals((facts(emitted(text .. "@host").manifest)), (facts(emitted(text).manifest)))
  end
end

support.run()
