-- scale: from a problem and a device to a variant. Any address and stride will do.
local select = require "gen.select"

local scale = {}

function scale.hopper() return nil, "scale has one kernel for all GPUs: it reads and writes as fast as the memory" end

scale.portable = select.portable(function(p, arch_name)
  return select.of(p, "portable", { { role = "scale", operator = "scale", dtype = p.dtype, arch = arch_name } })
end)

function scale.prebuilt(dtype) return { ("scale:%s:n4096:d4096"):format(dtype) } end

return scale
