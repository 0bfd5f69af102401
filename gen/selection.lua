-- What is selected: a path, its architecture, and kernels, each with a role in the plan, by which C finds it (runtime/jit/role.h), and a variant.
-- tensor_maps: whether one of them takes tensor maps, which the driver has to encode.
local emit = require "gen.emit"
local variant = require "gen.variant"

local selection = {}

-- specs: the fields of a variant each, and its role. nil and the reason where one is not legal.
function selection.of(path, specs)
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
function selection.join(found, other)
  table.move(other.kernels, 1, #other.kernels, #found.kernels + 1, found.kernels)
  found.tensor_maps = found.tensor_maps or other.tensor_maps
  return found
end

return selection
