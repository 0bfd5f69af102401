-- What the emitter writes of a source: all but the templates that stand in it word for word, of which the first line stays, and the banner's list of
-- these.
local emit = require "gen.emit"

return function(source, read_template)
  local parts = {}
  local first = source:find('#line 1 "', 1, true)
  parts[1] = source:sub(1, first - 1):gsub("//   templates/[^\n]*\n", "")
  while first do
    local next_section = source:find('\n#line 1 "', first, true)
    local section = source:sub(first, next_section or #source)
    local line, path, body = section:match('^(#line 1 "([^"\n]*)"\n)(.*)$')
    parts[#parts + 1] = body == emit.without_includes(read_template(path) or "") and line or section
    first = next_section and next_section + 1
  end
  return table.concat(parts)
end
