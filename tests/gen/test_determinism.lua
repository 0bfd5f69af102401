-- gen/: it writes the same bytes in every run and process, whatever the order of hash tables.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"

TestDeterminism = {}

-- All that the generator writes for one architecture of each search path and shared-memory limit.
local function everything(generator, read_template)
  local parts = {}
  for _, name in ipairs { "sm_80", "sm_90a", "sm_120a" } do
    for _, text in ipairs(generator.list(name, nil, "2304", read_template)) do
      local result = assert(generator.emit(text, read_template))
      parts[#parts + 1] = text .. "\n" .. result.source .. result.manifest
    end
  end
  return table.concat(parts)
end

local function once() return everything(support.fresh_generator(), support.read_template) end

-- What the first generator of this process wrote: all others are compared with it.
local written
local function first_written()
  written = written or once()
  return written
end

-- Within a process, hash tables differ only by the addresses of their keys. Few generators suffice, since the next test starts other processes.
function TestDeterminism.test_fresh_generators_write_the_same()
  local first = first_written()
  luaunit.assertTrue(#first > 1 << 20)
  for _ = 2, 4 do luaunit.assertTrue(once() == first) end
end

-- Lua seeds its hashes anew in each process, so that tables with string keys are walked in another order.
function TestDeterminism.test_other_processes_write_the_same()
  local first, interpreter = first_written(), 0
  while arg[interpreter - 1] do interpreter = interpreter - 1 end
  for _ = 1, 8 do
    local pipe = assert(io.popen(("FUSEDLOGP_SRCDIR='%s' '%s' '%s/tests/gen/test_determinism.lua' --write"):format(
      support.srcdir, arg[interpreter], support.srcdir)))
    local other = pipe:read("a")
    luaunit.assertTrue(pipe:close())
    luaunit.assertTrue(other == first)
  end
end

-- Nothing that differs between runs (hash order, files, clocks, random numbers) can matter: the generator works without the functions that give it, which
-- runtime/jit/lua_state.c removes.
function TestDeterminism.test_the_generator_works_without_what_differs_between_runs()
  local taken = { "pairs", "next", "io", "os", "debug", "load", "loadfile", "dofile", "print", "collectgarbage" }
  local first, kept, random = first_written(), {}, math.random -- files that support has read before are read again without io
  local generator = support.fresh_generator()
  for _, name in ipairs(taken) do kept[name], _G[name] = _G[name], nil end
  math.random = nil
  local ok, result = pcall(everything, generator, support.read_template)
  math.random = random
  for _, name in ipairs(taken) do _G[name] = kept[name] end
  luaunit.assertTrue(ok, result)
  luaunit.assertTrue(result == first)
end

function TestDeterminism.test_no_file_walks_a_hash_table()
  local files = support.generator_files()
  luaunit.assertTrue(#files >= 10)
  for _, path in ipairs(files) do
    local code = support.read_template(path):gsub("%-%-[^\n]*", "")
    for _, word in ipairs { "pairs", "next", "os", "io", "random" } do
      luaunit.assertNil(code:find("%f[%w_]" .. word .. "%f[^%w_]%s*[%(%.]"), ("%s uses %s"):format(path, word))
    end
  end
end

-- A process may have set a locale with a decimal comma; integers and hexadecimal literals look the same in all.
function TestDeterminism.test_no_file_formats_a_float()
  for _, path in ipairs(support.generator_files()) do
    luaunit.assertNil(support.read_template(path):find("%%%.?%d*[aeEfgG]"), path .. " formats a float")
  end
end

if arg[1] == "--write" then -- this is the other process
  io.write(once())
else
  support.run()
end
