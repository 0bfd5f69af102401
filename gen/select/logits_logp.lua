-- logits_logp: from a problem and a device to variants. They depend on dtype, V, options and alignment only, so that a row's bits never depend on N.
local arch = require "gen.arch"
local config = require "gen.kernels.logits_logp_config"
local select = require "gen.select"

local logits_logp = {}

-- The widest load, in bytes, that the addresses and the row strides of logits and, in a backward, gradients allow; nil if it is less than an element.
function logits_logp.vector_bytes(p)
  local strides = { p.logits_stride * p.element_bytes, p.grad_stride and p.grad_stride * p.element_bytes }
  return select.vector_bytes(p.pointer_alignment, strides, math.min(p.element_bytes, 4))
end

-- Adds the fields that all specs have, and returns the selection; nil and the reason if one is not legal. bytes: of a load.
local function selected(p, path, arch_name, bytes, specs)
  for _, spec in ipairs(specs) do
    spec.dtype, spec.arch, spec.softcap, spec.entropy = p.dtype, arch_name, p.softcap, p.entropy
    if spec.operator ~= "logits_logp_combine" and bytes < 16 then spec.vec = p.element_bytes end
    spec.half = spec.operator == "logits_logp" and p.v <= config.half_columns(spec)
    spec.w = spec.w or config.block_warps(spec)
  end
  return select.of(p, path, specs)
end

-- The specs of the forward, which a fused backward has too. On GPUs with clusters there is a kernel for few rows.
function logits_logp.forward(p, arch_name)
  local specs = {
    { role = "rows", operator = "logits_logp", argmax = p.argmax }, { role = "combine", operator = "logits_logp_combine", argmax = p.argmax, w = 8 },
  }
  if arch.find(arch_name).clusters then
    specs[3] = { role = "few_rows", operator = "logits_logp_cluster", argmax = p.argmax, cluster = config.row_cluster }
  end
  return specs
end

-- Gives an operator's module its functions hopper and portable. specs(p, arch_name): the specs that `selected` completes.
function logits_logp.paths(module, specs)
  local function on(path)
    return function(p, arch_name)
      local bytes = logits_logp.vector_bytes(p)
      if not bytes then return nil, ("addresses are multiples of %d bytes, elements have %d"):format(p.pointer_alignment, p.element_bytes) end
      return selected(p, path, arch_name, bytes, specs(p, arch_name))
    end
  end
  module.hopper, module.portable = select.hopper(" is not 9.0", on "sm_90a"), select.portable(on "portable")
end

logits_logp.paths(logits_logp, logits_logp.forward)

-- Problems whose kernels a prebuild compiles.
function logits_logp.prebuilt(dtype)
  return { ("logits_logp:%s:n4096:v131072"):format(dtype), ("logits_logp:%s:n4096:v131072:argmax"):format(dtype),
           ("logits_logp:%s:n4096:v131072:entropy"):format(dtype) }
end

return logits_logp
