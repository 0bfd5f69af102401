-- Mutation testing: puts single faults into a copy of the tree, one at a time, and says which of them are caught by the tests that the list names for each.
--   lua tests/faults/run.lua [-b BUILD] [-d DIRECTORY] [-j N] [-k PATTERN] [-p] [-t SECONDS] [LIST ...]
-- It is run from the top of the tree. LIST: lists of faults; by default all of tests/faults/list.
--   -b BUILD      a folder in the tree in which the tests are built (build). The tree is copied together with it.
--   -d DIRECTORY  the copies are DIRECTORY/0 .. N-1 (fusedlogp-faults in $TMPDIR); the faults are put into these
--   -j N          how many faults are tried at a time (1)
--   -k PATTERN    only the faults with names that match this Lua pattern
--   -p            puts in no fault, but lists those whose old text is not in its file any more, with exit status 1 if there are any
--   -t SECONDS    a test program that takes longer counts as failed (180)
-- The exit status is 1 if a fault was not caught.
--
-- A list is a text file. These lines describe a fault, its name first, then in any order (lines that begin with # are comments):
--   fault NAME
--   file PATH            the file that the fault changes
--   old TEXT             the text that is replaced; it must be in the file exactly once, but spaces do not matter. Each of its lines is an "old" line.
--   new TEXT             the text that replaces it; without a "new" line it is removed
--   test PROGRAM [CASES] a test to run: a program of the build folder (with the cases that match, FUSEDLOGP_HOST_CASES), a .lua file of tests/gen or a shell
--                        script. If there are several, each is run in turn until one fails. Each must pass without the fault.
-- A fault that nothing can observe may say so: "unobservable REASON". It is then listed and not tried.
local options = { b = "build", d = (os.getenv("TMPDIR") or "/tmp") .. "/fusedlogp-faults", j = "1", k = "", t = "180" }
local lists, worker = {}, nil

local function fail(...)
  io.stderr:write("faults: ", string.format(...), "\n")
  os.exit(2)
end

local function read_options()
  local i = 1
  while i <= #arg do
    local letter = arg[i]:match("^%-(%a)$")
    if letter == "w" then
      worker = tonumber(arg[i + 1])
      i = i + 2
    elseif letter == "p" then
      options.p = true
      i = i + 1
    elseif letter and options[letter] and arg[i + 1] then
      options[letter] = arg[i + 1]
      i = i + 2
    elseif arg[i]:sub(1, 1) == "-" then
      fail("%s is no option", arg[i])
    else
      lists[#lists + 1] = arg[i]
      i = i + 1
    end
  end
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function output_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  local succeeded, _, code = pipe:close()
  return text, succeeded and 0 or code
end

local function run(format, ...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = type(word) == "string" and quoted(word) or word end
  return output_of("{ " .. format:format(table.unpack(words)) .. "; } 2>&1")
end

local function read_file(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local function write_file(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

-- ---- lists ----

local function read_list(path, faults)
  local fault
  for line in io.lines(path) do
    local word, rest = line:match("^(%a+) ?(.*)$")
    if word == "fault" then
      fault = { name = rest, test = {} }
      faults[#faults + 1] = fault
    elseif word == "old" or word == "new" then
      fault[word] = fault[word] and fault[word] .. "\n" .. rest or rest
    elseif word == "test" then
      fault.test[#fault.test + 1] = rest
    elseif word == "file" or word == "unobservable" then
      fault[word] = rest
    elseif line:match("^%s*[^#%s]") then
      fail("%s: a line that says nothing: %s", path, line)
    end
  end
end

local function all_faults()
  local faults, wanted = {}, {}
  if #lists == 0 then
    for path in output_of("ls tests/faults/list/*.txt"):gmatch("[^\n]+") do lists[#lists + 1] = path end
  end
  for _, path in ipairs(lists) do read_list(path, faults) end
  for _, fault in ipairs(faults) do
    if fault.name:find(options.k) then wanted[#wanted + 1] = fault end
  end
  return wanted
end

-- ---- one fault in a copy ----

local directory -- this worker's copy of the tree
local passes = {} -- tests that have passed without a fault

local function make_copy()
  local text, code = run("rm -rf %s && mkdir -p %s && tar --exclude=./.git -cf - . | tar -xf - -C %s", directory, directory, directory)
  if code ~= 0 then fail("the tree cannot be copied: %s", text) end
end

-- Builds a target. Returns "", or what the compiler says if that fails.
local function build(target)
  local text, code = run("cd %s/%s && CCACHE_BASEDIR=%s make %s", directory, options.b, directory, target)
  return code == 0 and "" or text
end

-- Runs a test: "caught" (it fails), "not caught", "no case" or "does not build"; and the program's output.
local function try(test, reads_tree)
  local program, cases = test:match("^(%S+) ?(.*)$")
  local setting = ("cd %s/%s && export top_srcdir=$(cd .. && pwd) top_builddir=$(pwd) CC=cc CXX=c++ CFLAGS= && "
    .. "export FUSEDLOGP_SRCDIR=$top_srcdir FUSEDLOGP_CACHE_DIR=$top_builddir/tests/cache && ")
    :format(quoted(directory), quoted(options.b))
  local command, target = "./" .. program, program
  if program:find("%.lua$") then
    command, target = "lua ../" .. program, nil
  elseif program:find("%.sh$") then
    command, target = "sh ../" .. program, "all"
  end
  if reads_tree then setting = setting .. "export FUSEDLOGP_SOURCE_DIR=" .. quoted(directory) .. " && " end
  if cases ~= "" then setting = setting .. "export FUSEDLOGP_HOST_CASES=" .. quoted(cases) .. " && " end
  if target then
    local errors = build(target)
    if errors ~= "" then return "does not build", errors end
  end
  local text, code = output_of("{ " .. setting .. ("timeout %s sh ../tests/tap.sh %s; } 2>&1"):format(options.t, command))
  if text:find("does not compile", 1, true) then return "does not build", text end
  local failed = code ~= 0 or text:find("\nnot ok") or text:find("^not ok")
  -- tests/tap.sh reports a program that ran no case as a case with the program's own name.
  local ran = text:find("%f[%w]ok %d") and not (cases ~= "" and ("\n" .. text):find("\nok 1 - " .. program:match("[^/]*$") .. "\n", 1, true))
  return failed and "caught" or not ran and "no case" or "not caught", text
end

-- The first and last position of `wanted` in the text, where spaces do not matter; nil and the reason if it is not there, or more than once.
local function find_place(text, wanted)
  local letters, at = {}, {}
  for position, letter in text:gmatch("()(%S)") do
    letters[#letters + 1], at[#at + 1] = letter, position
  end
  local packed, packed_wanted = table.concat(letters), wanted:gsub("%s", "")
  local first, last = packed:find(packed_wanted, 1, true)
  if not first then return nil, "what is to be replaced does not stand there" end
  if packed:find(packed_wanted, first + 1, true) then return nil, "what is to be replaced stands there more than once" end
  local indent = text:sub(1, at[first] - 1):match("[ \t]*$") -- is replaced, too, because the first "old" line has its own
  return at[first] - #indent, at[last]
end

local function put_in(fault)
  local path = directory .. "/" .. fault.file
  local text = read_file(path)
  local first, last = find_place(text, fault.old)
  if not first then return nil, last end
  write_file(path, text:sub(1, first - 1) .. (fault.new or "") .. text:sub(last + 1))
  return text
end

local function show_lost(faults)
  local lost = 0
  for _, fault in ipairs(faults) do
    local file = io.open(fault.file, "rb")
    local first, reason
    if file then
      first, reason = find_place(file:read("a"), fault.old)
      file:close()
    else
      reason = "there is no such file"
    end
    if not first and not fault.unobservable then
      print(("%s: %s: %s"):format(fault.name, fault.file, reason))
      lost = lost + 1
    end
  end
  print(("%d faults, %d without a place"):format(#faults, lost))
  return lost == 0
end

local function judge(fault)
  local reads_tree = fault.file:find("^gen/") or fault.file:find("^templates/")
  for _, test in ipairs(fault.test) do
    if not passes[test] then
      local verdict, text = try(test, reads_tree)
      if verdict ~= "not caught" then return "fails without it", test .. ": " .. verdict .. "\n" .. text end
      passes[test] = true
    end
  end
  local before, reason = put_in(fault)
  local verdict, by = "not caught", table.concat(fault.test, ", ")
  if not before then return "no place", reason end
  for _, test in ipairs(fault.test) do
    local found, text = try(test, reads_tree)
    if found ~= "not caught" then
      verdict, by = found, test
      write_file(directory .. "/last.log", text)
      break
    end
  end
  write_file(directory .. "/" .. fault.file, before)
  return verdict, by
end

local function work(faults)
  directory = options.d .. "/" .. worker
  make_copy()
  for i, fault in ipairs(faults) do
    if (i - 1) % tonumber(options.j) == worker then
      local start = os.time()
      local verdict, by = "unobservable", fault.unobservable
      if not by then verdict, by = judge(fault) end
      print(("%-16s %4d s  %s  [%s]"):format(verdict, os.time() - start, fault.name, by))
      io.stdout:flush()
    end
  end
end

-- ---- all of them ----

-- Each worker is a process that runs this script.
local function spread(faults)
  local counts, pipes = {}, {}
  for i = 0, tonumber(options.j) - 1 do
    local command = ("lua %s -w %d -b %s -d %s -j %s -k %s -t %s"):format(arg[0], i, quoted(options.b), quoted(options.d), options.j,
                                                                           quoted(options.k), options.t)
    for _, list in ipairs(lists) do command = command .. " " .. quoted(list) end
    pipes[#pipes + 1] = assert(io.popen(command))
  end
  for _, pipe in ipairs(pipes) do
    for line in pipe:lines() do
      local verdict = line:match("^(%a[%a ]-)  +%d+ s  ")
      print(line)
      io.stdout:flush()
      if verdict then counts[verdict] = (counts[verdict] or 0) + 1 end
    end
    pipe:close()
  end
  print(("%d faults: %d caught, %d not caught, %d not to be observed, %d do not build, %d not tried"):format(#faults, counts.caught or 0,
    counts["not caught"] or 0, counts.unobservable or 0, counts["does not build"] or 0,
    (counts["no place"] or 0) + (counts["fails without it"] or 0)))
  return (counts.caught or 0) + (counts.unobservable or 0) == #faults
end

read_options()
local faults = all_faults()
if options.p then os.exit(show_lost(faults)) end
if worker then work(faults) else os.exit(spread(faults) and 0 or 1) end
