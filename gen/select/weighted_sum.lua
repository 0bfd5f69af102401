-- weighted_sum: from a problem and a device to variants. The team, which decides on a row's bits, depends on D and the dtype alone.
local kernel = require "gen.kernels.weighted_sum"
local select = require "gen.select"

local weighted_sum = {}

-- The number of threads that share a row, a power of two: each has at most four 16-byte vectors of the row, unless a block has too few threads for that.
local function team_for(p)
  local vectors = (p.d * p.element_bytes + 15) // 16
  local team = 1
  while team < kernel.threads and team * 4 < vectors do team = team * 2 end
  return team
end

function weighted_sum.hopper() return nil, "weighted_sum has one kernel for all GPUs: it reads as fast as the memory" end

weighted_sum.portable = select.portable(function(p, arch_name)
  local bytes = select.vector_bytes(p.pointer_alignment, { p.x_stride * p.element_bytes }, p.element_bytes)
  if not bytes then return nil, ("x is aligned to %d bytes, elements have %d"):format(p.pointer_alignment, p.element_bytes) end
  local spec = {
    role = "sum", operator = "weighted_sum", dtype = p.dtype, weight = p.w_dtype, y = p.y_dtype, team = team_for(p), vec = bytes < 16 and bytes or nil,
    arch = arch_name,
  }
  return select.of(p, "portable", { spec })
end)

-- Problems whose kernels a prebuild compiles: one for each team that the hidden sizes of language models take.
function weighted_sum.prebuilt(dtype, hidden_sizes)
  local problems = {}
  for _, d in ipairs(hidden_sizes or { 512, 1024, 2048, 4096, 8192, 16384 }) do
    problems[#problems + 1] = ("weighted_sum:%s:n4096:d%d"):format(dtype, d)
  end
  return problems
end

return weighted_sum
