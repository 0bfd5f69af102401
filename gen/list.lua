-- The useful variants of an architecture: what a prebuild compiles.
local arch = require "gen.arch"
local problem = require "gen.problem"
local select = require "gen.select"

local list = {}

local all_dtypes = { "bf16", "f16", "f32" }
local common_hidden_sizes = { 1024, 1536, 2048, 2304, 2560, 3072, 3584, 4096, 5120, 7168, 8192 }
local row_counts = { 64, 128, 4096 } -- one for each tile
local options = { "", ":argmax" }

local function known(value, set, what)
  for _, item in ipairs(set) do
    if item == value then return true end
  end
  return nil, ("%s = %s: known are %s"):format(what, tostring(value), table.concat(set, ", "))
end

local function selected(arch_name, p)
  local capability = arch.find(arch_name).capability
  if arch.find(arch_name).matrix == "wgmma" then return select.hopper(p, capability) end
  local found, reason = select.portable(p, capability)
  if not found then return nil, reason end
  -- Selection names the plain architecture; a list for sm_100a is for sm_100a.
  for i, name in ipairs(found.kernels) do found.kernels[i] = name:gsub("sm_%w+$", arch_name) end
  return found
end

-- dtypes, hidden_sizes: arrays or nil for all. Returns variant strings without repetition, in a fixed order. On sm_90a a dtype that its own
-- kernels do not take (fp32) is listed as the sm_90 kernels that a device runs instead.
function list.variants(arch_name, dtypes, hidden_sizes)
  local ok, reason = arch.find(arch_name)
  if not ok then return nil, reason end
  local names, seen = {}, {}
  for _, dtype in ipairs(dtypes or all_dtypes) do
    ok, reason = known(dtype, all_dtypes, "dtype")
    if not ok then return nil, reason end
    for _, d in ipairs(hidden_sizes or common_hidden_sizes) do
      if math.type(d) ~= "integer" or d < 1 then return nil, ("d = %s: wanted a positive integer"):format(tostring(d)) end
      for _, option in ipairs(options) do
        for _, rows in ipairs(row_counts) do
          local p = problem.parse(("linear_logp:%s:n%d:d%d:v131072%s"):format(dtype, rows, d, option))
          local found = selected(arch_name, p) or selected("sm_" .. arch.find(arch_name).capability, p)
          for _, name in ipairs(found and found.kernels or {}) do
            if not seen[name] then
              seen[name] = true
              names[#names + 1] = name
            end
          end
        end
      end
    end
  end
  return names
end

return list
