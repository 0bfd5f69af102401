-- templates/: the line `Config:` of each file names the members of Config that the file uses.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"

TestTemplates = {}

local folders = { "any", "parts", "sm80", "sm90", "sm90a" }

-- What follows `Config:` in the comment at the top, on that line and those below it.
local function config_line(text)
  local found
  for line in text:gmatch("[^\n]*\n") do
    local comment = line:match("^// ?(.*)\n")
    if found then
      if not comment then break end
      found = found .. " " .. comment
    else
      found = line:match("^// Config: (.*)\n")
    end
  end
  return found
end

-- names: the members that a line names itself; others: the templates whose members it names with "those of".
local function parse(line)
  local names, others = {}, {}
  local own = (line .. ";"):gsub("%b()", ""):gsub("those of (.-);", function(list)
    for name in list:gsub(" and ", ", "):gmatch("[%w_]+") do others[#others + 1] = name end
    return ""
  end)
  for name in own:gsub("%f[%w]and%f[%W]", ""):gmatch("[%w_]+") do if name ~= "none" then names[name] = true end end
  return names, others
end

local function read_templates()
  local templates = {}
  for _, folder in ipairs(folders) do
    for _, file in ipairs(support.lines_of(("ls '%s/templates/%s'"):format(support.srcdir, folder))) do
      local text = support.read_template(("templates/%s/%s"):format(folder, file))
      templates[folder .. "/" .. file:gsub("%.cuh$", "")] = { folder = folder, text = text, line = config_line(text) }
    end
  end
  return templates
end

-- The template of this name that a file of `folder` is emitted with: the one beside it, if there are several.
local function find(templates, name, folder)
  for _, place in ipairs { folder, table.unpack(folders) } do
    local found = templates[place .. "/" .. name]
    if found then return found end
  end
end

-- All members that the line of a template names. wrong: called with what is.
local function named(templates, template, wrong, all)
  all = all or {}
  local names, others = parse(template.line)
  for name in pairs(names) do all[name] = true end
  for _, name in ipairs(others) do
    local other = find(templates, name, template.folder)
    if other then named(templates, other, wrong, all) else wrong("no template is named " .. name) end
  end
  return all
end

local function used(text)
  local members = {}
  for name in text:gsub("//[^\n]*", ""):gmatch("%f[%w_]Config::([%w_]+)") do members[name] = true end
  return members
end

local function mistakes(templates)
  local list = {}
  for path, template in pairs(templates) do
    local function wrong(text) list[#list + 1] = path .. ": " .. text end
    if not template.line then
      wrong("no line begins with // Config:")
    else
      local members, all = used(template.text), named(templates, template, wrong)
      for name in pairs(members) do if not all[name] then wrong(name .. " is used and not named") end end
      for name in pairs((parse(template.line))) do if not members[name] then wrong(name .. " is named and not used") end end
    end
  end
  table.sort(list)
  return table.concat(list, "\n")
end

function TestTemplates.test_each_template_names_the_members_of_config_that_it_uses()
  luaunit.assertEquals(mistakes(read_templates()), "")
end

function TestTemplates.test_a_wrong_line_is_seen()
  local own = "// Adds.\n// Config: element (16 bits), threads,\n// unroll; those of other and another\n\n// Config::fifth\n" ..
    "int i = Config::element::x + Config::fourth;\n"
  local templates = {
    ["any/own"] = { folder = "any", text = own, line = config_line(own) },
    ["parts/other"] = { folder = "parts", text = "Config::fourth", line = "fourth" },
  }
  luaunit.assertEquals(mistakes(templates),
    "any/own: no template is named another\nany/own: threads is named and not used\nany/own: unroll is named and not used")
  templates["parts/other"].line = "none"
  luaunit.assertEquals(mistakes { ["parts/other"] = templates["parts/other"] }, "parts/other: fourth is used and not named")
end

support.run()
