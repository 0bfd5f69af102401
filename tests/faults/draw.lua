-- Draws random lines of the product, the places for the faults of drawn.txt: lua tests/faults/draw.lua SEED COUNT [AROUND], from the top of the tree, prints
-- COUNT lines, each with AROUND (6) lines before and after it. Every line of code of runtime, gen, templates and the files of bench that need no GPU is equally
-- likely. Not drawn are comments, includes, declarations without a value, heads of functions, lone braces, and templates that the tests replace by their host
-- implementations in templates/host.
local seed, count, around = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3] or "6")

local files = "git ls-files 'runtime/*.c' 'gen/*.lua' 'templates/*.cuh' bench/statistics.c bench/regimes.c bench/report.c"
  .. " bench/peaked_inputs.c bench/backward_check.c bench/filter_outcome.c | LC_ALL=C sort"

local function has_twin(path)
  local name = path:match("^templates/.*/([^/]+)$")
  local twin = name and io.open("templates/host/" .. name)
  if twin then twin:close() end
  return twin ~= nil
end

local function is_code(line, path)
  if path:find("%.lua$") then
    return line:find("[=(]") and not line:find("^%s*%-%-") and not line:find("require") and not line:find("function[^=]*%)$")
  end
  local is_head = line:find("^[%a_]") and not line:find(";%s*$")
  if is_head or line:find("^%s*[/#*]") then return false end
  return line:find("[%w].*[=(<>?|&+%-]") or line:find("return")
end

local lines = {}
local pipe = assert(io.popen(files))
for path in pipe:lines() do
  local number = 0
  if not has_twin(path) then
    for line in io.lines(path) do
      number = number + 1
      if is_code(line, path) then lines[#lines + 1] = { path = path, number = number } end
    end
  end
end
pipe:close()

math.randomseed(seed)
for i = 1, count do
  local place, number = lines[math.random(#lines)], 0
  print(("== %d  %s:%d"):format(i, place.path, place.number))
  for line in io.lines(place.path) do
    number = number + 1
    if math.abs(number - place.number) <= around then print((number == place.number and "> " or "  ") .. line) end
  end
end
