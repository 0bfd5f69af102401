-- Kernel selection: from a problem and a device to variants. Each operator has a module gen/select/OPERATOR.lua with hopper, portable and prebuilt.
local arch = require "gen.arch"
local emit = require "gen.emit"
local tuning = require "gen.tuning"
local variant = require "gen.variant"

local select = {}

-- Hidden sizes of language models, for which prebuilds have kernels.
select.common_hidden_sizes = { 768, 896, 1024, 1536, 2048, 2304, 2560, 2880, 3072, 3584, 4096, 5120, 6144, 7168, 8192 }

-- Makes a selection from specs: { path, arch, kernels, tensor_maps }, or nil and the reason if one of them is not legal.
-- specs: for each kernel the fields of its variant, its role in the plan, by which C finds it (runtime/jit/role.h), and `group`, the number of row groups that
-- a launch walks together, where selection knows better than the launch. p.tuning changes them.
-- kernels: { role, variant, group } each; group is 0 where the launch decides. tensor_maps: whether a kernel takes tensor maps, which the driver has to encode.
function select.of(p, path, specs)
  local kernels, tensor_maps = {}, false
  for i, spec in ipairs(specs) do
    local group, reason = tuning.apply(p.tuning or {}, spec)
    if not group then return nil, reason end
    local legal
    legal, reason = emit.check(spec)
    if legal then legal, reason = emit.serves(spec, p) end
    if not legal then return nil, reason end
    kernels[i] = { role = spec.role, variant = variant.format(spec), group = group > 0 and group or spec.group or 0 }
    tensor_maps = tensor_maps or emit.takes_tensor_maps(spec)
  end
  return { path = path, arch = specs[1].arch, kernels = kernels, tensor_maps = tensor_maps }
end

-- Adds the kernels of `other` to those of `found`. For a role that both have, the kernels must be the same.
function select.join(found, other)
  local known = {}
  for _, kernel in ipairs(found.kernels) do known[kernel.role] = kernel.variant end
  for _, kernel in ipairs(other.kernels) do
    if not known[kernel.role] then found.kernels[#found.kernels + 1] = kernel
    else assert(known[kernel.role] == kernel.variant, kernel.role) end
  end
  found.tensor_maps = found.tensor_maps or other.tensor_maps
  return found
end

-- The widest access, of at least `least` bytes, that the addresses' alignment and these row strides allow, all in bytes; nil if there is none.
function select.vector_bytes(alignment, strides, least)
  for _, bytes in ipairs { 16, 8, 4, 2 } do
    local fits = bytes >= least and alignment % bytes == 0
    for _, stride in ipairs(strides) do fits = fits and stride % bytes == 0 end
    if fits then return bytes end
  end
end

-- The bytes below which the distance of a tensor map's rows lies.
select.most_map_stride = 1 << 40

-- Makes an operator's function `portable`. chosen(p, arch_name, capability): returns what select.of does.
function select.portable(chosen)
  return function(p, capability)
    local arch_name, reason = arch.portable_for(capability)
    if not arch_name then return nil, reason end
    return chosen(p, arch_name, capability)
  end
end

-- Makes an operator's function `hopper`. why_not: ends the reason that is given for a compute capability without Hopper's kernels.
function select.hopper(why_not, chosen)
  return function(p, capability)
    local arch_name = arch.hopper_for(capability)
    if not arch_name then return nil, ("compute capability %d.%d%s"):format(capability // 10, capability % 10, why_not) end
    return chosen(p, arch_name, capability)
  end
end

-- The operator's module, loaded at its first use (as in gen/emit.lua).
function select.operator(name) return require("gen.select." .. name) end

local has_chunks = { linear_logp_backward = true, linear_cross_entropy = true }

-- The reason why p.tuning does not fit a selection: an item is neither for a selected kernel nor for the chunks in which kernels are launched; nil if it fits.
local function tunes_others(p, found)
  local selected = { [tuning.chunks] = has_chunks[p.operator] }
  for _, kernel in ipairs(found.kernels) do selected[kernel.role] = true end
  for _, item in ipairs(p.tuning) do
    if not selected[item.role] then return ("tuning: no kernel has the role %s"):format(item.role) end
  end
end

-- The portable kernels whose PTX the driver of a newer GPU compiles.
local function from_ptx(operator, p, capability)
  local base = arch.table[arch.ptx].capability
  if capability <= base then return nil, ("PTX of %s is for GPUs of a compute capability above %d.%d"):format(arch.ptx, base // 10, base % 10) end
  local found, reason = operator.portable(p, base)
  if found then found.reason = ("PTX of %s, which the driver compiles"):format(arch.ptx) end
  return found, reason
end

-- A problem's kernels, as select.of returns them, with `reason`: why the faster paths were not chosen; or nil and all reasons. backend: "sm_90a", "portable",
-- "auto" for the first of these two that is possible, or "ptx": the portable path on a GPU for which there are only kernels in PTX. tuning_text: "" for
-- selection's own choice of tiles.
function select.kernels(p, capability, backend, tuning_text)
  local operator, reasons, reason = select.operator(p.operator), {}, nil
  p.tuning, reason = tuning.parse(tuning_text or "")
  if not p.tuning then return nil, reason end
  if backend == "ptx" then return from_ptx(operator, p, capability) end
  for _, path in ipairs { { "sm_90a", operator.hopper }, { "portable", operator.portable } } do
    if backend == "auto" or backend == path[1] then
      local found
      found, reason = path[2](p, capability)
      if found then reason = tunes_others(p, found) end
      if found and not reason then
        found.reason = table.concat(reasons, "; ")
        return found
      end
      reasons[#reasons + 1] = ("not %s: %s"):format(path[1], reason)
    end
  end
  return nil, table.concat(reasons, "; ")
end

return select
