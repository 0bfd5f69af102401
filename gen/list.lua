-- The useful variants of an architecture: what a prebuild compiles.
local advice = require "gen.advice"
local arch = require "gen.arch"
local cxx = require "gen.cxx"
local model = require "gen.model"
local problem = require "gen.problem"
local select = require "gen.select"
local token_loss = require "gen.token_loss"
local tuning = require "gen.tuning"

local list = {}

-- Other spellings of dtypes that users write.
local spelled = { fp16 = "f16", fp32 = "f32" }

local function known(value, set, what)
  for _, item in ipairs(set) do
    if item == value then return true end
  end
  return nil, ("%s = %s: known are %s"):format(what, tostring(value), table.concat(set, ", "))
end

-- A problem's kernels: those that selection chooses, and those that a GPU with slow memory uses in their place (gen/advice.lua); nil if there are none.
local function selected(arch_name, p)
  local device = arch.find(arch_name)
  local function of(text)
    p.tuning = tuning.parse(text)
    local found = select.operator(p.operator)[device.kernels](p, device.capability)
    return found and found.kernels
  end
  local kernels = of ""
  if not kernels then return nil end
  local advised = advice.text(p, tuning.specs_of(kernels), model.known(advice.any_slow))
  if advised ~= "" then table.move(of(advised), 1, #kernels, #kernels + 1, kernels) end
  -- Selection names the architecture by which a device finds its kernels: sm_100 for a device that could run sm_100a. That is never a host architecture, so for
  -- a list for sm_90a@host the variants are renamed.
  if arch_name:find("@host$") then
    for _, kernel in ipairs(kernels) do kernel.variant = kernel.variant:gsub("sm_%w+$", arch_name) end
  end
  return kernels
end

local largest_d = 2147483647 -- as of the library's problems

local function check(arch_name, dtypes, hidden_sizes)
  local ok, reason = arch.find(arch_name)
  if not ok then return nil, reason end
  for _, dtype in ipairs(dtypes) do
    ok, reason = known(dtype, cxx.names, "dtype")
    if not ok then return nil, reason end
  end
  for _, d in ipairs(hidden_sizes or {}) do
    if math.type(d) ~= "integer" or d < 1 or d > largest_d then return nil, ("d = %s: wanted a whole number from 1 to %d"):format(tostring(d), largest_d) end
  end
  return true
end

-- What the list of these hidden sizes leaves out, a line each.
function list.left_out(hidden_sizes)
  return {
    "hidden sizes other than " .. table.concat(hidden_sizes or select.common_hidden_sizes, ", "),
    "two options at once of argmax, entropy, softcap, bias and [D, V], and in fp32 any but argmax",
    "rows and addresses that are no multiples of 16 bytes, a bias or gradients of another dtype than hidden but a main gradient of weight in fp32",
    "gradients with a filter, steps of 128 rows or less, and shards of the vocabulary",
    "token losses of your own, which --token-loss adds",
  }
end

-- dtypes, hidden_sizes: arrays or nil for all. read_template: as emit's. Returns variant strings without repetition, in a fixed order. On sm_90a a
-- problem that its own kernels do not take (fp32 of linear_logp's backward, odd D) is listed as the sm_90 kernels that a device runs instead.
function list.variants(arch_name, dtypes, hidden_sizes, read_template)
  local wanted = {}
  for i, dtype in ipairs(dtypes or cxx.names) do wanted[i] = spelled[dtype] or dtype end
  dtypes = wanted
  local ok, reason = check(arch_name, dtypes, hidden_sizes)
  if not ok then return nil, reason end
  local names, seen = {}, {}
  local fallback = ("sm_%d%s"):format(arch.find(arch_name).capability, arch.real_of(arch_name) and "@host" or "")
  for _, operator in ipairs(problem.operators) do
    for _, dtype in ipairs(dtypes) do
      for _, text in ipairs(select.operator(operator).prebuilt(dtype, hidden_sizes)) do
        local p = token_loss.resolve(read_template, problem.parse(text))
        for _, kernel in ipairs(selected(arch_name, p) or selected(fallback, p) or {}) do
          if not seen[kernel.variant] then
            seen[kernel.variant] = true
            names[#names + 1] = kernel.variant
          end
        end
      end
    end
  end
  return names
end

return list
