-- tests/golden/: emitted sources that are checked in, so that a commit's diff shows how it changes them. `tests/golden/update` rewrites them.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local fusedlogp = require "gen.fusedlogp"
local skeleton = dofile(support.srcdir .. "/tests/golden/skeleton.lua")

TestGolden = {}

local function variants()
  local list = {}
  for text in io.lines(support.srcdir .. "/tests/golden/variants") do list[#list + 1] = text end
  return list
end

-- The lines that differ, as diff -u shows them; "" if none differ.
local function difference(path, text)
  local name = os.tmpname()
  local file = assert(io.open(name, "wb"))
  file:write(text)
  file:close()
  local pipe = assert(io.popen(("diff -u '%s' '%s'"):format(path, name)))
  local lines = pipe:read("a")
  pipe:close()
  os.remove(name)
  return lines
end

local function compare(text, extension, now)
  local path = ("%s/tests/golden/%s.%s"):format(support.srcdir, text, extension)
  local golden = support.read(path)
  luaunit.assertNotNil(golden, path .. " is missing: tests/golden/update")
  if golden ~= now then luaunit.fail("it changed: see whether it should, then tests/golden/update\n" .. difference(path, now)) end
end

function TestGolden.test_sources_are_the_golden_ones()
  for _, text in ipairs(variants()) do compare(text, "cu", skeleton(fusedlogp.emit(text, support.read_template).source, support.read_template)) end
end

function TestGolden.test_manifests_are_the_golden_ones()
  for _, text in ipairs(variants()) do compare(text, "manifest", fusedlogp.emit(text, support.read_template).manifest) end
end

function TestGolden.test_there_are_no_other_golden_files()
  local wanted, found = { "skeleton.lua", "update", "variants" }, support.lines_of(("ls '%s/tests/golden'"):format(support.srcdir))
  for _, text in ipairs(variants()) do
    wanted[#wanted + 1] = text .. ".cu"
    wanted[#wanted + 1] = text .. ".manifest"
  end
  luaunit.assertItemsEquals(found, wanted)
end

support.run()
