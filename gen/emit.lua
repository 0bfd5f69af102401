-- Writes one self-contained source and its manifest for a legal variant.
local accumulation = require "gen.accumulation"
local arch = require "gen.arch"
local budget = require "gen.budget"
local variant = require "gen.variant"

local emit = {}

local kernels = {
  linear_logp = { wgmma = require "gen.kernels.linear_logp_hopper", mma = require "gen.kernels.linear_logp_portable" },
  linear_logp_combine = require "gen.kernels.linear_logp_combine",
}

local cxx_types = { bf16 = "bf16", f16 = "f16", f32 = "float" }

function emit.kernel_of(spec)
  local found = kernels[spec.operator]
  return found.entry and found or found[arch.find(spec.arch).matrix]
end

-- true, or nil and the reason.
function emit.check(spec)
  return emit.kernel_of(spec).check(spec, arch.find(spec.arch))
end

local function config_lines(spec, kernel, n)
  local lines = { "struct Config {" }
  local function constant(kind, name, value) lines[#lines + 1] = ("    static constexpr %s %s = %s;"):format(kind, name, tostring(value)) end
  if spec.dtype then
    lines[#lines + 1] = ("    using element = %s;"):format(cxx_types[spec.dtype])
    lines[#lines + 1] = ("    using bias_element = %s;"):format(cxx_types[spec.bias or "f32"])
    constant("int", "hidden_size", spec.d)
    constant("int", "block_rows", spec.bm)
    constant("int", "block_vocab", spec.bv)
    constant("int", "block_hidden", n.block_hidden)
    constant("int", "cluster", spec.cluster)
    constant("int", "stages", spec.stages)
    constant("bool", "weight_is_hidden_vocab", spec.dv or false)
    constant("bool", "has_bias", spec.bias ~= nil)
    constant("bool", "has_softcap", spec.softcap or false)
    constant("float", "correction", accumulation.correction(spec))
  end
  constant("bool", "wants_argmax", spec.argmax or false)
  constant("int", "threads", n.threads)
  constant("int", "shared_bytes", n.shared_bytes)
  for _, entry in ipairs(kernel.config(spec, n)) do constant(entry[1], entry[2], entry[3]) end
  lines[#lines + 1] = "};"
  return table.concat(lines, "\n") .. "\n"
end

local function find_template(name, search, read_template)
  for _, folder in ipairs(search) do
    local path = ("templates/%s/%s.cuh"):format(folder, name)
    local text = read_template(path)
    if text then return path, text end
  end
  error(("template %s is in none of %s"):format(name, table.concat(search, ", ")))
end

local conditions = {
  tensor = function(spec) return not spec.exact end,
  exact  = function(spec) return spec.exact end,
  f32    = function(spec) return spec.dtype == "f32" and not spec.exact end,
}

local function wanted(spec, entry)
  return entry.only == nil or conditions[entry.only](spec)
end

local function template_text(spec, entry, search, read_template)
  if type(entry) == "table" and entry.emit then return entry.emit(spec) end
  if type(entry) == "table" and not wanted(spec, entry) then return "" end
  local path, text = find_template(type(entry) == "table" and entry[1] or entry, search, read_template)
  return ('#line 1 "%s"\n%s'):format(path, text)
end

local function entry_point(spec, kernel, n, name)
  local parameters, arguments = {}, {}
  for _, parameter in ipairs(kernel.parameters) do
    parameters[#parameters + 1] = ("const __grid_constant__ %s %s"):format(parameter[1], parameter[2])
    arguments[#arguments + 1] = parameter[2]
  end
  local cluster = (spec.cluster or 1) > 1 and (" __cluster_dims__(%d, 1, 1)"):format(spec.cluster) or ""
  return ('#line 1 "entry"\nextern "C" __global__ void __launch_bounds__(%d, %d)%s\n%s(%s) {\n    %s<Config>(%s);\n}\n'):format(
    n.threads, n.blocks_per_multiprocessor, cluster, name, table.concat(parameters, ", "), kernel.entry, table.concat(arguments, ", "))
end

-- KEEP IN STEP: manifest fields (runtime/jit/manifest.h).
local function manifest_lines(spec, kernel, n, name)
  local lines = {
    "variant " .. variant.format(spec),
    "kernel " .. name,
    "arch " .. spec.arch,
    "threads " .. n.threads,
    "shared_bytes " .. n.shared_bytes,
    "registers " .. n.registers,
    "cluster " .. (spec.cluster or 1),
    "resident_blocks " .. budget.resident_blocks(n, arch.find(spec.arch)),
    "overlaps " .. (kernel.overlaps and kernel.overlaps(spec) and 1 or 0),
    "block_rows " .. spec.bm,
    "block_vocab " .. (spec.bv or 0),
    "block_hidden " .. (n.block_hidden or 0),
    "round_splits " .. (spec.s or 0),
    "hidden_box_rows " .. (n.hidden_box_rows or 0),
    "weight_box_columns " .. (n.weight_box_columns or 0),
    "weight_box_rows " .. (n.weight_box_rows or 0),
    "numerics " .. kernel.numerics(spec),
  }
  return table.concat(lines, "\n") .. "\n"
end

-- read_template(path): its text, or nil.
function emit.source(spec, read_template)
  local kernel = emit.kernel_of(spec)
  local n = kernel.derive(spec)
  local name = "flp_" .. variant.format(spec):gsub("%.", "_")
  local search = arch.find(spec.arch).search
  local parts = { ("// fusedlogp %s\n// Emitted by fusedlogp-gen; the templates below are the source.\n"):format(variant.format(spec)) }
  local config = config_lines(spec, kernel, n)
  for i, entry in ipairs(kernel.templates) do
    parts[#parts + 1] = template_text(spec, entry, search, read_template)
    if i == 1 then parts[#parts + 1] = '#line 1 "config"\n' .. config end -- behind the types it names
  end
  parts[#parts + 1] = entry_point(spec, kernel, n, name)
  return { source = table.concat(parts), manifest = manifest_lines(spec, kernel, n, name) }
end

return emit
