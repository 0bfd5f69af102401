-- From a problem and a device to variants: each operator has a module with hopper, portable and prebuilt.
local select = {}

-- The operator's module, loaded when it is first asked for (as in gen/emit.lua).
function select.operator(name) return require("gen.select." .. name) end

-- backend: "auto", "sm_90a" or "portable". Fastest first; the reason says why not. What is found is as in gen/selection.lua.
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
