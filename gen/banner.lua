-- The comment at the top of an emitted source: what the kernel computes, how it is launched, what the threads of a block do, what is in its shared memory, and
-- what each part of the source is.
--
-- A kernel's module has a function `about(spec, n)` that returns the texts `computes`, `grid` and `threads`, and `shared`, a list of { bytes, what } in the
-- order of the kernel's struct.
local banner = {}

local width = 150

-- text as lines of a comment, each of which begins with `indent`.
local function wrapped(indent, text)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if line ~= "" and #indent + #line + 1 + #word > width then
      lines[#lines + 1] = indent .. line
      line = word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = indent .. line
  return table.concat(lines, "\n") .. "\n"
end

local function shared_lines(about, n, name)
  local parts, total = {}, 0
  for _, part in ipairs(about.shared or {}) do
    if part[1] > 0 then parts[#parts + 1] = ("//   %7d  %s\n"):format(part[1], part[2]) end
    total = total + part[1]
  end
  if total ~= n.shared_bytes then error(("%s: the banner tells of %d bytes of shared memory, the kernel has %d"):format(name, total, n.shared_bytes)) end
  if total == 0 then return "// Shared memory: none\n" end
  return ("// Shared memory: %d bytes\n"):format(total) .. table.concat(parts)
end

-- The first sentence of a template's opening comment.
local function purpose(text)
  local comment = {}
  for line in text:gmatch("[^\n]*") do
    local words = line:match("^// ?(.*)") or line:match("^/%* ?(.*)") or line:match("^ %* ?(.*)")
    if not words or words == "" or words:find("^Config:") then break end
    comment[#comment + 1] = words:gsub(" *%*/.*", "")
    if line:find("*/", 1, true) then break end
  end
  local all = table.concat(comment, " ")
  return all:match("^(.-%.)%s") or all
end

-- parts: { path, text } of the source's parts, in their order.
local function part_lines(parts)
  local lines, widest = {}, 0
  for _, part in ipairs(parts) do widest = math.max(widest, #part[1]) end
  for _, part in ipairs(parts) do
    local line = ("//   %-" .. widest .. "s  %s"):format(part[1], purpose(part[2]))
    lines[#lines + 1] = (#line <= width and line or line:sub(1, width - 3):gsub("%s+%S*$", "") .. " ...") .. "\n"
  end
  return table.concat(lines)
end

-- name: the variant's canonical string.
function banner.text(name, spec, kernel, n, parts)
  local about = kernel.about(spec, n)
  local cluster = spec.cluster or 1
  return ("// fusedlogp %s\n// Emitted by fusedlogp-gen; the templates below are the source.\n//\n"):format(name)
    .. wrapped("// Computes: ", about.computes):gsub("\n// Computes: ", "\n//   ")
    .. wrapped("// Grid: ", about.grid):gsub("\n// Grid: ", "\n//   ")
    .. ("// Cluster: %s\n"):format(cluster > 1 and cluster .. " blocks" or "none")
    .. wrapped(("// Block: %d threads: "):format(n.threads), about.threads):gsub("\n// Block: %d+ threads: ", "\n//   ")
    .. shared_lines(about, n, name)
    .. "// Parts:\n" .. part_lines(parts)
end

return banner
