-- Architectures: what NVRTC is told, what a block may use, which kernels are written for it, where templates are looked for.
local arch = {}

-- Search paths: folders of templates/, the first one first. any: whole kernels that every GPU runs; parts: what kernels are made of.
local hopper = { "sm90a", "sm90", "sm80", "any", "parts" }
local since_90 = { "sm90", "sm80", "any", "parts" }
local since_80 = { "sm80", "any", "parts" }

-- capability: 10 x major + minor of the devices that run it. shared_bytes: the most shared memory of a block (the opt-in limit).
-- kernels: "hopper" or "portable". It names the function of the modules in gen/select/ that chooses kernels and, where a kernel is written for both, ends the
-- name of its module in gen/kernels/.
-- search: the folders of the kernels' templates. The other columns say what these templates use of the hardware:
--   dependent_launch  programmatic dependent launch: a kernel begins while the one before it ends, and waits for it itself
--   clusters          blocks of a cluster reach each other's shared memory
arch.names = {
  "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_103a",
  "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121", "sm_121a",
}
arch.table = {
  sm_80   = { capability = 80,  shared_bytes = 166912, kernels = "portable", search = since_80 },
  sm_86   = { capability = 86,  shared_bytes = 101376, kernels = "portable", search = since_80 },
  sm_87   = { capability = 87,  shared_bytes = 166912, kernels = "portable", search = since_80 },
  sm_89   = { capability = 89,  shared_bytes = 101376, kernels = "portable", search = since_80 },
  sm_90   = { capability = 90,  shared_bytes = 232448, kernels = "portable", search = since_90, dependent_launch = true },
  sm_90a  = { capability = 90,  shared_bytes = 232448, kernels = "hopper",   search = hopper,   dependent_launch = true, clusters = true },
  sm_100  = { capability = 100, shared_bytes = 232448, kernels = "portable", search = since_90, dependent_launch = true },
  sm_100a = { capability = 100, shared_bytes = 232448, kernels = "portable", search = since_90, dependent_launch = true },
  sm_103  = { capability = 103, shared_bytes = 232448, kernels = "portable", search = since_90, dependent_launch = true },
  sm_103a = { capability = 103, shared_bytes = 232448, kernels = "portable", search = since_90, dependent_launch = true },
  sm_110  = { capability = 110, shared_bytes = 232448, kernels = "portable", search = since_90, dependent_launch = true },
  sm_110a = { capability = 110, shared_bytes = 232448, kernels = "portable", search = since_90, dependent_launch = true },
  sm_120  = { capability = 120, shared_bytes = 101376, kernels = "portable", search = since_90, dependent_launch = true },
  sm_120a = { capability = 120, shared_bytes = 101376, kernels = "portable", search = since_90, dependent_launch = true },
  sm_121  = { capability = 121, shared_bytes = 101376, kernels = "portable", search = since_90, dependent_launch = true },
  sm_121a = { capability = 121, shared_bytes = 101376, kernels = "portable", search = since_90, dependent_launch = true },
}

-- The architecture whose portable kernels a newer GPU runs from PTX if it is not in this table. They fit every GPU, because none has less shared memory for a
-- block.
arch.ptx = "sm_86"

-- The architecture whose kernels the host machine (the GPU simulator, tests/host) runs: "sm_90a" for "sm_90a@host"; nil for a name without @host.
function arch.real_of(name) return tostring(name):match("^(.*)@host$") end

-- NAME@host emits NAME's kernels as C++: the search path begins with the host implementations ("twins") of the files that wrap instructions.
local function host_of(real)
  local search = { "host" }
  for _, folder in ipairs(real.search) do search[#search + 1] = folder end
  return setmetatable({ is_host = true, search = search }, { __index = real })
end

function arch.find(name)
  local real = arch.real_of(name)
  local found = arch.table[real or name]
  if found then return real and host_of(found) or found end
  return nil, ("arch = %s: known are %s"):format(tostring(name), table.concat(arch.names, ", "))
end

-- The architecture with Hopper's kernels that a device of this compute capability runs, or nil.
function arch.hopper_for(capability)
  for _, name in ipairs(arch.names) do
    if arch.table[name].kernels == "hopper" and arch.table[name].capability == capability then return name end
  end
end

-- The architecture whose portable kernels a device of this compute capability runs.
function arch.portable_for(capability)
  local name = ("sm_%d"):format(capability)
  if arch.table[name] then return name end
  return nil, ("compute capability %d.%d: kernels exist for %s"):format(
    capability // 10, capability % 10, table.concat(arch.names, ", "))
end

return arch
