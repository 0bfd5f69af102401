-- Writes one self-contained source and its manifest for a legal variant.
local arch = require "gen.arch"
local banner = require "gen.banner"
local budget = require "gen.budget"
local helpers = require "gen.kernels.helpers"
local logits_config = require "gen.kernels.logits_logp_config"
local tile_config = require "gen.kernels.tile_config"
local variant = require "gen.variant"

local emit = {}

-- Kernels that are written once for Hopper and once portably, in gen/kernels/NAME_hopper.lua and NAME_portable.lua. Every other kernel's module is
-- gen/kernels/NAME.lua, except for the small kernels in gen/kernels/helpers.lua.
local by_architecture = { linear_logp = true, linear_logp_save_exp = true, linear_logp_grad_logits = true, matrix_product = true }

-- Functions that a kernel's module may leave out.
local defaults = { check = function() return true end, config = function() return {} end }
defaults.__index = defaults

-- Loads the kernel's module at its first use: a process that finds its kernels in the cache on disk should not have to read all modules.
function emit.kernel_of(spec)
  if helpers[spec.operator] then return setmetatable(helpers[spec.operator], defaults) end
  local family = by_architecture[spec.operator] and "_" .. arch.find(spec.arch).kernels or ""
  return setmetatable(require("gen.kernels." .. spec.operator .. family), defaults)
end

-- true, or nil and the reason.
function emit.check(spec)
  return emit.kernel_of(spec).check(spec, arch.find(spec.arch))
end

-- KEEP IN STEP: flp_linear_budget_most_splits (runtime/operators/linear/linear_budget.c), which has the same tiles: columns and s of those that selection
-- chooses; and flp_split_compute (runtime/operators/linear/linear_logp_plan.c).
emit.tiles_of_steps = { { 256, 132 }, { 192, 132 }, { 168, 132 }, { 128, 132 }, { 128, 108 } }
local function splits_of(vocab, columns, s)
  local tiles = (vocab + columns - 1) // columns
  return tiles // s < 2 and tiles or s + tiles % s
end

-- A forward that is a part of a step or of a loss: their workspace has room for the splits of any tile that selection chooses.
local function has_room_for_splits(spec, p)
  for _, tile in ipairs(emit.tiles_of_steps) do
    if splits_of(p.v, spec.bv, spec.s) <= splits_of(p.v, tile[1], tile[2]) then return true end
  end
end

-- Whether a kernel can do a problem: true, or nil and the reason.
function emit.serves(spec, p)
  if spec.s and (p.loss or p.forward) and not has_room_for_splits(spec, p) then
    return nil, ("bv = %d, s = %d: %d splits are more than the workspace of a step or a loss has room for"):format(spec.bv, spec.s,
      splits_of(p.v, spec.bv, spec.s))
  end
  local longest_row = emit.kernel_of(spec).longest_row
  if not longest_row or p.v <= longest_row(spec) then return true end
  return nil, ("c = %d: a row has %d entries, a cluster room for %d"):format(spec.cluster, p.v, longest_row(spec))
end

-- Whether the kernel's first parameters are tensor maps.
function emit.takes_tensor_maps(spec) return emit.kernel_of(spec).parameters[1][1] == "TensorMap" end

-- kernel.config: { kind, name, value } each; kind "using" names a type.
local function config_lines(spec, kernel, n)
  local lines = { "struct Config {" }
  local function add(kind, name, value)
    local line = kind == "using" and "    using %s = %s;" or "    static constexpr " .. kind .. " %s = %s;"
    lines[#lines + 1] = line:format(name, tostring(value))
  end
  for _, entry in ipairs(kernel.config(spec, n)) do add(entry[1], entry[2], entry[3]) end
  add("int", "threads", n.threads)
  add("int", "shared_bytes", n.shared_bytes)
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

-- Removes C's #include lines: header_text puts the headers that they name in front.
function emit.without_includes(text) return (text:gsub('#include "[^"\n]*"', "")) end

-- A header that C includes, too: "params/types" is templates/params/types.h. The headers that it includes come before it. present: those that the source has
-- already; each is there once.
local function header_text(name, present, read_template)
  if present[name] then return "" end
  present[name] = true
  local path = ("templates/%s.h"):format(name)
  local text = read_template(path) or error(("there is no %s"):format(path))
  local parts = {}
  if text:find('#include "', 1, true) then
    for included in text:gmatch('#include "([^"\n]*)%.h"') do parts[#parts + 1] = header_text(included, present, read_template) end
    text = emit.without_includes(text)
  end
  parts[#parts + 1] = ('#line 1 "%s"\n%s'):format(path, text)
  return table.concat(parts)
end

local conditions = {
  tensor = function(spec) return not spec.exact end,
  exact  = function(spec) return spec.exact end,
  f32    = function(spec) return spec.dtype == "f32" and not spec.exact end,
  filters = function(spec) return spec.filter end,
  ragged = function(spec) return spec.ragged end,
  in_step = function(spec) return spec.in_step end,
  parts = function(spec) return spec.parts or spec.slabs end,
  slabs = function(spec) return spec.slabs end,
  shifts_vectors = function(spec) return spec.vec or logits_config.is_staged(spec) end,
  staged = logits_config.is_staged,
  unstaged = function(spec) return not logits_config.is_staged(spec) end,
  targets = function(spec) return spec.targets end,
  tickets = budget.takes_tickets,
  turns = function(spec) return spec.wg and spec.bm == spec.wg end,
  vocabulary_targets = tile_config.looks_targets_up,
  softcap = function(spec) return spec.softcap end,
}

local function wanted(spec, entry)
  return entry.only == nil or conditions[entry.only](spec)
end

local function template_text(spec, entry, search, present, read_template)
  if type(entry) == "string" and entry:find("^params/") then return header_text(entry, present, read_template) end
  if type(entry) == "table" and entry.emit then return entry.emit(spec, read_template) end
  if type(entry) == "table" and not wanted(spec, entry) then return "" end
  local path, text = find_template(type(entry) == "table" and entry[1] or entry, search, read_template)
  return ('#line 1 "%s"\n%s'):format(path, text)
end

-- The entry point for the host machine, which passes parameters as a launch does, by pointers. An array beside the kernel has their sizes.
local function host_entry_point(spec, kernel, name)
  local arguments, sizes = {}, {}
  for i, parameter in ipairs(kernel.parameters) do
    arguments[i] = ("*(const %s *)parameters[%d]"):format(parameter[1], i - 1)
    sizes[i] = ("\n    sizeof(%s), "):format(parameter[1])
  end
  return ('#line 1 "entry"\nextern "C" __attribute__((no_sanitize("thread"))) void\n%s(void **parameters) {\n    %s<Config>(\n        %s);\n}\n'
    .. 'extern "C" const unsigned\n%s_parameter_bytes[] = {%s0};\n'):format(
    name, spec.operator, table.concat(arguments, ",\n        "), name, table.concat(sizes))
end

local function entry_point(spec, kernel, n, name)
  if arch.find(spec.arch).is_host then return host_entry_point(spec, kernel, name) end
  local parameters, arguments = {}, {}
  for _, parameter in ipairs(kernel.parameters) do
    parameters[#parameters + 1] = ("const __grid_constant__ %s %s"):format(parameter[1], parameter[2])
    arguments[#arguments + 1] = parameter[2]
  end
  local cluster = (spec.cluster or 1) > 1 and (" __cluster_dims__(%d, 1, 1)"):format(spec.cluster) or ""
  return ('#line 1 "entry"\nextern "C" __global__ void __launch_bounds__(%d, %d)%s\n%s(\n    %s) {\n    %s<Config>(%s);\n}\n'):format(
    n.threads, n.blocks_per_multiprocessor, cluster, name, table.concat(parameters, ",\n    "), spec.operator, table.concat(arguments, ", "))
end

-- dependent_launch: the kernel itself waits for the one before it (kernel.dependent_launch), and the architecture has an instruction for that.
-- The fields are those of runtime/jit/manifest.h, whose reader refuses any other list.
local function manifest_lines(spec, kernel, n, name)
  local local_bytes = 0
  for _, entry in ipairs(kernel.templates) do
    if entry == "values_in_memory" then local_bytes = 2 * (n.warp_columns or spec.bv) end -- a thread's accumulators of a fragment
    if entry[1] == "segment_beyond_softcap" and wanted(spec, entry) then local_bytes = logits_config.lane_bytes(spec) end
  end
  local lines = {
    "variant " .. variant.format(spec),
    "kernel " .. name,
    "arch " .. spec.arch,
    "threads " .. n.threads,
    "shared_bytes " .. n.shared_bytes,
    "registers " .. n.registers,
    "local_bytes " .. local_bytes,
    "cluster " .. (spec.cluster or 1),
    "resident_blocks " .. budget.resident_blocks(n, arch.find(spec.arch)),
    "dependent_launch " .. (kernel.dependent_launch and arch.find(spec.arch).dependent_launch and 1 or 0),
    "block_rows " .. (spec.bm or n.block_rows or 0),
    "block_columns " .. (spec.bv or n.block_columns or 0),
    "block_inner " .. (n.block_inner or 0),
    "n_split " .. (spec.s or 0),
    "a_box_rows " .. (n.a_box_rows or 0),
    "b_box_columns " .. (n.b_box_columns or 0),
    "b_box_rows " .. (n.b_box_rows or 0),
    "takes_slabs " .. (spec.slabs and 1 or 0),
    "numerics " .. kernel.numerics(spec),
  }
  return table.concat(lines, "\n") .. "\n"
end

-- The templates and headers of a source: { name, text } for each `#line 1 "name"`, except for the parts that the emitter itself writes, whose names have no
-- slash. They are found by plain searches, because a pattern would look at each character.
local function sections(body)
  local mark, found, at = '\n#line 1 "', {}, 1
  local name_at = #mark
  while at do
    local next_at = body:find(mark, at, true)
    local line_end = body:find("\n", at, true)
    local name = body:sub(name_at, line_end - 2)
    if name:find("/", 1, true) then found[#found + 1] = { name, body:sub(line_end + 1, next_at) } end
    at, name_at = next_at and next_at + 1, next_at and next_at + #mark
  end
  return found
end

local function kernel_name(spec) return "flp_" .. variant.format(spec):gsub("[.@]", "_") end

-- n: what kernel.derive returns.
local function body_of(spec, kernel, n, read_template)
  local search, present = arch.find(spec.arch).search, {}
  local parts = {}
  local config = config_lines(spec, kernel, n)
  if arch.find(spec.arch).is_host then parts[#parts + 1] = template_text(spec, "cuda", search, present, read_template) end
  parts[#parts + 1] = header_text("params/types", present, read_template)
  for i, entry in ipairs(kernel.templates) do
    parts[#parts + 1] = template_text(spec, entry, search, present, read_template)
    if i == 1 then parts[#parts + 1] = '#line 1 "config"\n' .. config end -- after the types that it names
  end
  parts[#parts + 1] = entry_point(spec, kernel, n, kernel_name(spec))
  return table.concat(parts)
end

-- read_template(path): its text, or nil.
function emit.source(spec, read_template)
  local kernel = emit.kernel_of(spec)
  local n = kernel.derive(spec)
  local body = body_of(spec, kernel, n, read_template)
  return {
    source = banner.text(variant.format(spec), spec, kernel, n, sections(body)) .. body, manifest = manifest_lines(spec, kernel, n, kernel_name(spec)),
  }
end

-- A cache, by a section's text, because kernels share most of their sections.
local without_layout = setmetatable({}, { __index = function(known, text)
  local code = text:gsub("/%*.-%*/", " "):gsub("//[^\n]*", ""):gsub("%s+", " ")
  known[text] = code
  return code
end })

-- The templates that a variant uses, without comments and layout: a change of this text is a change of the kernel.
function emit.reached(spec, read_template)
  local kernel, parts = emit.kernel_of(spec), {}
  for _, section in ipairs(sections(body_of(spec, kernel, kernel.derive(spec), read_template))) do
    parts[#parts + 1] = section[1] .. ":" .. without_layout[section[2]] .. "\n"
  end
  return table.concat(parts)
end

return emit
