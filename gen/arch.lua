-- Architectures: what NVRTC is told, what a block may use, where templates are looked for.
local arch = {}

local hopper = { "sm90a", "sm80", "any", "common" }
local portable = { "sm80", "any", "common" }

-- capability: 10 x major + minor of the devices that run it. shared_bytes: the opt-in limit of a block.
-- matrix: the instruction that the tile kernel of the first folder uses.
arch.names = {
  "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_103a",
  "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121", "sm_121a",
}
arch.table = {
  sm_80   = { capability = 80,  shared_bytes = 166912, matrix = "mma",   search = portable },
  sm_86   = { capability = 86,  shared_bytes = 101376, matrix = "mma",   search = portable },
  sm_87   = { capability = 87,  shared_bytes = 166912, matrix = "mma",   search = portable },
  sm_89   = { capability = 89,  shared_bytes = 101376, matrix = "mma",   search = portable },
  sm_90   = { capability = 90,  shared_bytes = 232448, matrix = "mma",   search = portable },
  sm_90a  = { capability = 90,  shared_bytes = 232448, matrix = "wgmma", search = hopper },
  sm_100  = { capability = 100, shared_bytes = 232448, matrix = "mma",   search = portable },
  sm_100a = { capability = 100, shared_bytes = 232448, matrix = "mma",   search = portable },
  sm_103  = { capability = 103, shared_bytes = 232448, matrix = "mma",   search = portable },
  sm_103a = { capability = 103, shared_bytes = 232448, matrix = "mma",   search = portable },
  sm_110  = { capability = 110, shared_bytes = 232448, matrix = "mma",   search = portable },
  sm_110a = { capability = 110, shared_bytes = 232448, matrix = "mma",   search = portable },
  sm_120  = { capability = 120, shared_bytes = 101376, matrix = "mma",   search = portable },
  sm_120a = { capability = 120, shared_bytes = 101376, matrix = "mma",   search = portable },
  sm_121  = { capability = 121, shared_bytes = 101376, matrix = "mma",   search = portable },
  sm_121a = { capability = 121, shared_bytes = 101376, matrix = "mma",   search = portable },
}

-- Of "sm_90a@host", "sm_90a": the architecture whose kernels the host machine runs. Else nil.
function arch.real_of(name) return tostring(name):match("^(.*)@host$") end

-- NAME@host emits NAME's kernels as C++: the twins of the wrapper files come first.
local function host_of(real)
  local host = {
    is_host = true, capability = real.capability, shared_bytes = real.shared_bytes, matrix = real.matrix, search = { "host" },
  }
  for _, folder in ipairs(real.search) do host.search[#host.search + 1] = folder end
  return host
end

function arch.find(name)
  local real = arch.real_of(name)
  local found = arch.table[real or name]
  if found then return real and host_of(found) or found end
  return nil, ("arch = %s: known are %s"):format(tostring(name), table.concat(arch.names, ", "))
end

-- The architecture whose portable kernels a device of this compute capability runs.
function arch.portable_for(capability)
  local name = ("sm_%d"):format(capability)
  if arch.table[name] then return name end
  return nil, ("compute capability %d.%d: kernels exist for %s"):format(
    capability // 10, capability % 10, table.concat(arch.names, ", "))
end

return arch
