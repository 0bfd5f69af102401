-- What the generator's tests share: reading the source tree, fresh copies of the generator, checks of selections and refusals, and the runner.
local luaunit = require "luaunit"

local support = { srcdir = os.getenv("FUSEDLOGP_SRCDIR") or "." }

-- The tests make megabytes of text that soon becomes garbage: with generational collection they take a ninth less time.
collectgarbage("generational")

-- The whole text of a file, or nil.
function support.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("a")
  file:close()
  return text
end

-- The text of a file of the source tree, or nil. Each file is read once, because no test changes the tree. texts: false for a file that does not exist.
local texts = {}
function support.read_template(path)
  if texts[path] == nil then texts[path] = support.read(support.srcdir .. "/" .. path) or false end
  return texts[path] or nil
end

-- The variants that a prebuild of the architecture compiles. Each list is made once, because that takes a tenth of a second.
local lists = {}
function support.list(arch_name)
  lists[arch_name] = lists[arch_name] or assert(require("gen.list").variants(arch_name, nil, nil, support.read_template))
  return lists[arch_name]
end

-- Lines of a command's output.
function support.lines_of(command)
  local lines, pipe = {}, assert(io.popen(command, "r"))
  for line in pipe:lines() do lines[#lines + 1] = line end
  luaunit.assertTrue(pipe:close(), command)
  return lines
end

-- The files of gen/, by find, below the source tree.
function support.generator_files()
  return support.lines_of(("cd '%s' && find gen -name '*.lua' | LC_ALL=C sort"):format(support.srcdir))
end

local function module_of(path) return (path:gsub("%.lua$", ""):gsub("/", ".")) end

-- Loads gen/fusedlogp.lua and all modules of gen/ anew.
function support.fresh_generator()
  for _, path in ipairs(support.generator_files()) do package.loaded[module_of(path)] = nil end
  return require "gen.fusedlogp"
end

-- CUDA C++ Programming Guide, technical specifications by compute capability: most shared memory of a thread block, in KiB.
support.shared_kib = { [80] = 163, [86] = 99, [87] = 163, [89] = 99, [90] = 227, [100] = 227, [103] = 227, [110] = 227, [120] = 99, [121] = 99 }

-- The compute capabilities without WGMMA, in ascending order.
function support.portable_capabilities()
  local capabilities = {}
  for capability in pairs(support.shared_kib) do
    if capability ~= 90 then capabilities[#capabilities + 1] = capability end
  end
  table.sort(capabilities)
  return capabilities
end

-- A copy of base with changes; the value `support.none` removes a field.
support.none = {}
function support.with(base, changes)
  local copy = {}
  for name, value in pairs(base) do copy[name] = value end
  for name, value in pairs(changes) do
    if value == support.none then copy[name] = nil else copy[name] = value end
  end
  return copy
end

-- Of a selection: the variants of its kernels; the variant of a role; the spec of each kernel by its role.
function support.variants(found)
  local variants = {}
  for i, kernel in ipairs(found.kernels) do variants[i] = kernel.variant end
  return variants
end

function support.variant(found, role)
  for _, kernel in ipairs(found.kernels) do
    if kernel.role == role then return kernel.variant end
  end
end

function support.specs(found)
  local specs = {}
  for _, kernel in ipairs(found.kernels) do specs[kernel.role] = require("gen.variant").parse(kernel.variant) end
  return specs
end

-- Asserts that a function refused with a reason: it returned nil and a text that contains each of `texts`.
function support.assert_refused(texts, result, reason)
  luaunit.assertNil(result, "accepted; wanted: " .. table.concat(texts, " | "))
  luaunit.assertIsString(reason)
  for _, text in ipairs(texts) do luaunit.assertStrContains(reason, text) end
end

-- Calls body() and returns each `return nil, ...` statement of a source file that was not executed, as text. body must itself require the modules that it
-- tests, because the file is loaded anew, with every such statement on a line of its own.
function support.refusals_missed(path, body)
  local text = support.read_template(path):gsub(" return nil, ", "\nreturn nil, ")
  local module, reached, missed, number = module_of(path), {}, {}, 0
  package.preload[module] = assert(load(text, "@" .. path))
  support.fresh_generator()
  debug.sethook(function(_, line)
    if debug.getinfo(2, "S").source == "@" .. path then reached[line] = true end
  end, "l")
  local ok, message = xpcall(body, debug.traceback)
  debug.sethook()
  package.preload[module] = nil
  support.fresh_generator()
  if not ok then error(message, 0) end

  for line in (text .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if line:find("^return nil, ") and not reached[number] then missed[#missed + 1] = line end
  end
  return table.concat(missed, "\n")
end

-- The last statement of a test file: runs its tests, unless tests/gen/run.lua gathers the tests of all files and runs them itself.
function support.run()
  if not support.gathering then os.exit(luaunit.LuaUnit.run("--output", "tap", "--verbose"), true) end
end

return support
