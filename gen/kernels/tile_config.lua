-- The constants of the tile kernels' Config, and the texts of their banners.
local arch = require "gen.arch"
local cxx = require "gen.cxx"

local config = {}

-- Whether a product's rows or columns are vocabulary entries, so that a tile's targets must be looked up.
function config.looks_targets_up(spec) return spec.targets == "in_rows" or spec.targets == "in_columns" end

-- A product in parts only sums: another kernel adds the parts, applies the factors and adds the targets' contribution.
function config.check_parts(spec)
  if not spec.parts then return true end
  if spec.out ~= "f32" or spec.adds or spec.targets or spec.ragged then return nil, "parts: sums in f32 that overwrite out, without targets" end
  if spec.filter or spec.in_step then return nil, "parts: a filter or clusters in step count steps of the whole inner size" end
  return true
end

-- Whether a product with targets in columns has registers for ping-pong tiles of 192 columns.
function config.has_registers_for_wide_columns(spec) return spec.cluster == 2 and spec.out ~= "f32" and not (spec.ragged or spec.in_step) end

-- The Config of a product's epilogue. takes_factors: fp16 derivatives have one factor for all; with saved exponentials each row of grad_hidden has its own.
-- targets_*: in what the product writes, each row has its own target, or the rows or the columns are vocabulary entries.
function config.product_epilogue(spec)
  return {
    { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false },
    { "bool", "takes_factors", not spec.parts and (spec.dtype == "f16" or not config.looks_targets_up(spec)) },
    { "bool", "targets_of_rows", spec.targets == "of_rows" }, { "bool", "targets_in_rows", spec.targets == "in_rows" },
    { "bool", "targets_in_columns", spec.targets == "in_columns" },
  }
end

-- One list of those given, in their order.
function config.join(...)
  local joined = {}
  for _, list in ipairs { ... } do
    for _, entry in ipairs(list) do joined[#joined + 1] = entry end
  end
  return joined
end

-- The templates by which linear_logp's kernels turn a tile of products into statistics of rows, on any architecture. What an option or an output needs is in
-- these.
config.statistics_templates = {
  "schedule", "logit_bounds", "row_offset", { only = "softcap", "softcap" }, "local_memory", "values_in_memory", "row_statistics",
}

-- The factor that corrects the mean of the tensor cores' truncation error.
--
-- Tensor cores add each 16 (or 8) products to the accumulator with truncation (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores,
-- PeerJ Computer Science 7:e330, 2021), so a logit loses a share of itself that grows with D. Measured on an H200 with normal data, against fp64, for wgmma and
-- mma.sync alike: 1.1e-8 of the logit for each 16 of D at D = 256, 1.3e-8 at 1024, 1.5e-8 at 4096 and 8192. The factor adds 2^-26 = 1.49e-8 for each 16 of D,
-- which halves the error of a logit (root mean square, D = 4096: 8.8e-6 to 4.3e-6). Architectures that were not measured get no correction; nor does fp32,
-- whose stages are summed by ordinary additions.
local measured = { sm_90 = true, sm_90a = true }

-- The factor in C++, from integers and hexadecimal literals: a formatted float would have the decimal point of the process's locale.
local function correction(spec)
  if spec.dtype == "f32" or not measured[arch.real_of(spec.arch) or spec.arch] then return "1.0f" end
  return ("1.0f + %d * 0x1p-30f"):format(spec.d)
end

-- The Config of the options of linear_logp and its backward.
function config.options(spec)
  return {
    { "int", "inner_size", spec.d }, { "bool", "has_bias", spec.bias ~= nil }, { "using", "bias_element", cxx.types[spec.bias or "f32"] },
    { "bool", "has_softcap", spec.softcap or false }, { "float", "correction", correction(spec) },
    { "bool", "wants_argmax", spec.argmax or false }, { "bool", "wants_entropy", spec.entropy or false },
    { "bool", "wants_logit_sum", spec.logit_sum or false }, { "bool", "has_class_weights", spec.classes ~= nil },
    { "using", "class_element", cxx.types[spec.classes or "f32"] }, { "bool", "is_packed", spec.packed or false },
  }
end

-- Whether A and B are stored with the inner size as their rows. A product's spec says so of both, a forward's of its weight (dv), which is B.
function config.transposed(spec) return spec.a_transposed or false, spec.b_transposed or spec.dv or false end

function config.tile(spec, n)
  local a_transposed, b_transposed = config.transposed(spec)
  return {
    { "using", "element", cxx.types[spec.dtype] }, { "int", "block_rows", spec.bm }, { "int", "block_columns", spec.bv },
    { "int", "block_inner", n.block_inner }, { "int", "cluster", spec.cluster }, { "int", "stages", spec.stages },
    { "bool", "a_transposed", a_transposed }, { "bool", "b_transposed", b_transposed },
  }
end

-- The Config of Hopper's mainloop. steps_together: stages that are filled at once. b_is_read_once: once the row blocks that run have read a tile of B, nobody
-- reads it again soon, so that the L2 had better keep A.
function config.hopper(spec, n, steps_together, b_is_read_once)
  return {
    { "int", "consumer_groups", n.consumer_groups }, { "int", "group_rows", n.group_rows }, { "int", "turns", n.turns },
    { "int", "steps_together", steps_together },
    { "bool", "b_is_read_once", b_is_read_once or false },
    { "bool", "splits_operands", spec.dtype == "f32" }, { "int", "producer_registers", n.producer_registers },
    { "int", "splitter_registers", n.splitter_registers }, { "int", "consumer_registers", n.consumer_registers },
    { "int", "b_box_columns", n.b_box_columns }, { "int", "b_box_rows", n.b_box_rows },
    { "int", "fragment_columns", spec.bv },
  }
end

-- What a banner says of every tile kernel on Hopper (gen/banner.lua). units: the launch has row groups x units to work on: "splits" or "column tiles".
function config.about_hopper(spec, n, computes, units)
  local groups = n.consumer_groups
  local roles = groups == 1 and "warpgroup 0 multiplies 64 rows; the first thread of warpgroup 1 loads"
    or n.turns > 1 and "warpgroups 0 and 1 take turns to multiply, with tiles of their own: one's sums lie under the other's products; the first thread of "
      .. "warpgroup 2 loads"
    or ("warpgroups 0 to %d multiply, %d rows each; the first thread of warpgroup %d loads"):format(groups - 1, n.group_rows, groups)
  if spec.dtype == "f32" then roles = roles .. ("; warpgroup %d splits each number in two tf32 parts"):format(groups + 1) end
  if config.looks_targets_up(spec) then roles = roles .. ", its second warp looks up the targets of the next tile" end
  return {
    computes = computes, threads = roles, shared = n.shared,
    grid = spec.cluster == 1 and ("persistent: min(multiprocessors, row blocks x %s) blocks; a row block has %d rows"):format(units, spec.bm)
      or ("persistent: min(multiprocessors / %d, row groups x %s) clusters, which share B's tiles; a row group has %d rows"):format(
        spec.cluster, units, spec.bm * spec.cluster),
  }
end

-- What a banner says of every portable tile kernel.
function config.about_portable(spec, n, computes, units)
  return {
    computes = computes, shared = n.shared,
    threads = ("%d x %d warps copy together, and multiply %d rows x %d columns each"):format(n.warps_down, n.warps_across, n.warp_rows, n.warp_columns),
    grid = ("persistent: min(resident blocks, row blocks x %s); a row block has %d rows"):format(units, spec.bm),
  }
end

local weight_shapes = { [true] = "[D, V]", [false] = "[V, D]" }

-- The text for z, the logits, from which the forwards and the logits' derivatives are computed.
local function logits(spec)
  local z = "z = " .. (spec.softcap and "softcap(" or "") .. "hidden . weight^T" .. (spec.bias and " + bias" or "") .. (spec.softcap and ")" or "")
  return ("%s, hidden [N, D] %s, D = %d, weight %s"):format(z, spec.dtype, spec.d, weight_shapes[spec.dv or false])
end

function config.computes_statistics(spec)
  local more = {}
  if spec.entropy then more[#more + 1] = "their moment for the entropy" end
  if spec.argmax then more[#more + 1] = "the largest logit" end
  if spec.logit_sum then more[#more + 1] = "the sum of the logits" end
  return ("of each row and split of the vocabulary (tiles of %d columns, in about %d splits) the sum of 2^(z log2(e) / temperature - k) and its integer "
    .. "offset k%s, and the target's logit; %s"):format(spec.bv, spec.s, #more > 0 and ", " .. table.concat(more, ", ") or "", logits(spec))
end

function config.computes_offsets(spec)
  return ("of each row the integer offset k, the rounded maximum of z log2(e) / temperature over the vocabulary's first %d entries; %s"):format(
    spec.bv, logits(spec))
end

function config.computes_grad_logits(spec)
  return "out[N, columns], the derivatives of the loss by the logits of a chunk of the vocabulary, whose targets' stay apart in fp32; " .. logits(spec)
end

function config.computes_product(spec)
  local a_transposed, b_transposed = config.transposed(spec)
  local parts = spec.parts and ", each part over a range of the inner size"
    or spec.slabs and not a_transposed and ", one part of the inner size after the other" or ""
  return ("out[%srows, columns] %s %s= %sA B of %s, summed in fp32%s; A lies %s%s, B %s%s"):format(
    spec.parts and "parts, " or "", spec.out, spec.adds and "+" or "", spec.parts and "" or "factor . ", spec.dtype, parts,
    a_transposed and "[inner, rows]" or "[rows, inner]", spec.slabs and ", in slabs" or "",
    b_transposed and "[inner, columns]" or "[columns, inner]", spec.targets and "; the targets' derivatives contribute in fp32" or "")
end

return config
