-- weighted_sum_backward: from a problem and a device to variants. grad_x takes one kernel, grad_w two.
local cxx = require "gen.cxx"
local select = require "gen.select"

local weighted_sum_backward = {}

local function narrow(bytes) return bytes < 16 and bytes or nil end

-- grad_x is aligned to its elements at least, whatever pointer_alignment says.
local function outer_for(p, arch_name)
  local element = cxx.bytes[p.grad_x]
  local bytes = select.vector_bytes(math.max(p.pointer_alignment, element), { p.grad_x_stride * element }, element)
  return { role = "outer", operator = "weighted_sum_outer", dtype = p.grad_x, weight = p.w_dtype, g = p.y_dtype, vec = narrow(bytes), arch = arch_name }
end

local function selected(p, path, arch_name)
  local specs = {}
  if p.grad_x then specs[#specs + 1] = outer_for(p, arch_name) end
  if p.grad_w then
    local bytes = select.vector_bytes(p.pointer_alignment, { p.x_stride * p.element_bytes }, p.element_bytes)
    if not bytes then return nil, ("x is aligned to %d bytes, elements have %d"):format(p.pointer_alignment, p.element_bytes) end
    specs[#specs + 1] = { role = "tile", operator = "weighted_sum_tile", dtype = p.dtype, g = p.y_dtype, gw = p.grad_w, vec = narrow(bytes), arch = arch_name }
    specs[#specs + 1] = { role = "combine", operator = "weighted_sum_combine", gw = p.grad_w, arch = arch_name }
  end
  return select.of(p, path, specs)
end

-- The same kernels as on the portable path, but the combine begins before the tile kernel has ended (programmatic dependent launch).
weighted_sum_backward.hopper = select.hopper(": its overlapping launches are those of 9.0", function(p, arch_name)
  if not p.grad_w then return nil, "grad_x alone has one kernel for all GPUs: it writes as fast as the memory" end
  return selected(p, "sm_90a", arch_name)
end)

weighted_sum_backward.portable = select.portable(function(p, arch_name) return selected(p, "portable", arch_name) end)

function weighted_sum_backward.prebuilt(dtype)
  return { ("weighted_sum_backward:%s:n4096:d4096:gx_%s:gw_%s"):format(dtype, dtype, dtype) }
end

return weighted_sum_backward
