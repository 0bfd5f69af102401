-- From a problem and a device to variants: each operator has a module with hopper, portable and prebuilt.
local emit = require "gen.emit"
local variant = require "gen.variant"

local select = {}

-- What is selected: a path, its architecture, and kernels, each with a role in the plan, by which C finds it (runtime/jit/role.h), and a variant.
-- tensor_maps: whether one of them takes tensor maps, which the driver has to encode.
-- specs: the fields of a variant each, and its role. nil and the reason where one is not legal.
function select.of(path, specs)
  local kernels, tensor_maps = {}, false
  for i, spec in ipairs(specs) do
    local legal, reason = emit.check(spec)
    if not legal then return nil, reason end
    kernels[i] = { role = spec.role, variant = variant.format(spec) }
    tensor_maps = tensor_maps or emit.takes_tensor_maps(spec)
  end
  return { path = path, arch = specs[1].arch, kernels = kernels, tensor_maps = tensor_maps }
end

-- Adds the kernels of `other` to those of `found`.
function select.join(found, other)
  table.move(other.kernels, 1, #other.kernels, #found.kernels + 1, found.kernels)
  found.tensor_maps = found.tensor_maps or other.tensor_maps
  return found
end

-- The operator's module, loaded when it is first asked for (as in gen/emit.lua).
function select.operator(name) return require("gen.select." .. name) end

-- backend: "auto", "sm_90a" or "portable". Fastest first; the reason says why not. What is found is as select.of gives it.
function select.kernels(p, capability, backend)
  local operator, reasons = select.operator(p.operator), {}
  for _, path in ipairs { { "sm_90a", operator.hopper }, { "portable", operator.portable } } do
    if backend == "auto" or backend == path[1] then
      local found, reason = path[2](p, capability)
      if found then
        found.reason = table.concat(reasons, "; ")
        return found
      end
      reasons[#reasons + 1] = ("not %s: %s"):format(path[1], reason)
    end
  end
  return nil, table.concat(reasons, "; ")
end

return select
