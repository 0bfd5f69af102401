-- The variant's canonical string: operator, then named fields in one fixed order, then the architecture.
--   linear_logp.bf16.d4096.bm128.bv256.s132.c2.p4.bias_f32.sm_90a
--   linear_logp_combine.bm8.sm_90a
local arch = require "gen.arch"
local cxx = require "gen.cxx"

local variant = {}

local largest_number = 2147483647 -- C has an int for it
local dtypes = {}
for _, name in ipairs(cxx.names) do dtypes[name] = true end

-- The fields, in the order in which they are written. number: a prefix and a positive integer; flag: a word; choice: a prefix and one of a set; word: a prefix
-- and a name.
-- The numbers: d hidden size; bm, bv rows and columns of a tile; wg rows of a consumer warpgroup, if not 64; s big splits of the vocabulary; c blocks of a
-- cluster; p stages; w warps of a block; t threads that share a row; vec bytes of a load or copy, if not 16.
local fields = {
  { name = "dtype",   choice = dtypes, prefix = "" },
  { name = "d",       number = "d" },
  { name = "bm",      number = "bm" },
  { name = "wg",      number = "wg" },
  { name = "bv",      number = "bv" },
  { name = "s",       number = "s" },
  { name = "cluster", number = "c" },
  { name = "stages",  number = "p" },
  { name = "w",       number = "w" },
  { name = "weight",  choice = dtypes, prefix = "w_" },
  { name = "y",       choice = dtypes, prefix = "y_" },
  { name = "g",       choice = dtypes, prefix = "g_" },
  { name = "gw",      choice = dtypes, prefix = "gw_" },
  { name = "team",    number = "t" },
  { name = "dv",      flag = "dv" },
  { name = "a_transposed",      flag = "a_transposed" },
  { name = "b_transposed",      flag = "b_transposed" },
  { name = "bias",    choice = dtypes, prefix = "bias_" },
  { name = "softcap", flag = "softcap" },
  { name = "argmax",  flag = "argmax" },
  { name = "entropy", flag = "entropy" },
  { name = "logit_sum", flag = "logit_sum" },
  { name = "classes", choice = dtypes, prefix = "classes_" },
  { name = "out",     choice = dtypes, prefix = "out_" },
  { name = "adds",    flag = "adds" },
  { name = "ragged",  flag = "ragged" },
  { name = "vec",     number = "vec" },
  { name = "half",    flag = "half" },
  { name = "exact",   flag = "exact" },
  { name = "packed", flag = "packed" },
  { name = "filter",  flag = "filter" },
  { name = "in_step", flag = "in_step" },
  { name = "parts",   flag = "parts" },
  { name = "slabs",   flag = "slabs" },
  { name = "targets", choice = { of_rows = true, in_rows = true, in_columns = true }, prefix = "targets_" },
  { name = "loss",    word = "loss_" },
}

variant.operators = {
  linear_logp = { required = { "dtype", "d", "bm", "bv", "s", "cluster", "stages" },
                  optional = { "wg", "dv", "bias", "softcap", "argmax", "entropy", "logit_sum", "classes", "vec", "exact", "packed" } },
  linear_logp_save_exp = { required = { "dtype", "d", "bm", "bv", "s", "cluster", "stages" }, optional = { "wg", "dv", "bias", "entropy", "vec" } },
  linear_logp_offsets = { required = { "dtype", "d", "bm", "bv", "cluster", "stages" }, optional = { "dv", "bias" } },
  linear_logp_grad_logits = { required = { "dtype", "d", "bm", "bv", "cluster", "stages" },
                              optional = { "wg", "dv", "bias", "softcap", "entropy", "logit_sum", "classes", "vec", "exact", "filter" } },
  linear_logp_backward_filter = { required = {}, optional = {} },
  linear_logp_backward_rows = { required = {}, optional = { "dtype" } },
  linear_logp_backward_gather = { required = { "dtype" }, optional = {} },
  linear_logp_backward_bias = { required = { "dtype", "out" }, optional = { "adds" } },
  linear_logp_backward_finish = { required = { "out" }, optional = { "dtype", "weight", "dv", "adds", "parts" } },
  linear_logp_backward_target_order = { required = {}, optional = {} },
  linear_logp_backward_other_shards = { required = {}, optional = {} },
  matrix_product = { required = { "dtype", "bm", "bv", "cluster", "stages", "out" },
                     optional = { "wg", "a_transposed", "b_transposed", "adds", "ragged", "vec", "exact", "filter", "in_step", "parts", "slabs",
                                  "targets" } },
  linear_logp_combine = { required = { "bm" }, optional = { "argmax", "entropy", "logit_sum" } },
  linear_logp_shard_targets = { required = {}, optional = {} },
  linear_logp_partials = { required = { "bm" }, optional = { "argmax", "entropy", "logit_sum" } },
  linear_logp_merge = { required = {}, optional = {} },
  linear_logp_merge_sums = { required = {}, optional = {} },
  token_loss = { required = { "loss" }, optional = {} },
  logits_logp = { required = { "dtype", "w" }, optional = { "softcap", "argmax", "entropy", "vec", "half" } },
  logits_logp_cluster = { required = { "dtype", "cluster", "w" }, optional = { "softcap", "argmax", "entropy", "vec" } },
  logits_logp_combine = { required = { "dtype", "w" }, optional = { "softcap", "argmax", "entropy" } },
  logits_logp_gradient = { required = { "dtype", "w" }, optional = { "softcap", "entropy", "vec" } },
  logits_logp_fused = { required = { "dtype", "w" }, optional = { "softcap", "entropy", "vec" } },
  logits_logp_fused_cluster = { required = { "dtype", "cluster", "w" }, optional = { "softcap", "entropy", "vec" } },
  scale = { required = { "dtype" }, optional = {} },
  weighted_sum = { required = { "dtype", "weight", "y", "team" }, optional = { "vec" } },
  weighted_sum_outer = { required = { "dtype", "weight", "g" }, optional = { "vec" } },
  weighted_sum_tile = { required = { "dtype", "g", "gw" }, optional = { "vec" } },
  weighted_sum_combine = { required = { "gw" }, optional = {} },
}

local function contains(list, name)
  for _, item in ipairs(list) do
    if item == name then return true end
  end
  return false
end

local function field_text(field, value)
  if field.flag then return field.flag end
  if field.number then return ("%s%d"):format(field.number, value) end
  if field.word then return field.word .. value end
  return field.prefix .. value
end

function variant.format(spec)
  local parts = { spec.operator }
  for _, field in ipairs(fields) do
    local value = spec[field.name]
    if value then parts[#parts + 1] = field_text(field, value) end
  end
  parts[#parts + 1] = spec.arch
  return table.concat(parts, ".")
end

local function field_value(field, part)
  if field.flag then return part == field.flag or nil end
  if field.number then
    local digits = part:match("^" .. field.number .. "([1-9]%d*)$")
    local value = digits and math.tointeger(tonumber(digits))
    return value and value <= largest_number and value or nil
  end
  if field.word then return part:match("^" .. field.word .. "([a-z][a-z0-9_]*)$") end
  local word = part:sub(1, #field.prefix) == field.prefix and part:sub(#field.prefix + 1)
  return word and field.choice[word] and word or nil
end

-- The inverse of format: nil and what is wrong for anything that format would not write.
function variant.parse(text)
  local parts = {}
  for part in (text .. "."):gmatch("([^.]*)%.") do parts[#parts + 1] = part end
  local operator = variant.operators[parts[1]]
  if not operator then return nil, ("%s: unknown operator %q"):format(text, parts[1]) end
  local spec = { operator = parts[1], arch = parts[#parts] }
  local ok, reason = arch.find(spec.arch)
  if not ok then return nil, ("%s: %s"):format(text, reason) end

  local at = 2
  for _, field in ipairs(fields) do
    local part = at < #parts and parts[at] or ""
    local value = field_value(field, part)
    if value and (contains(operator.required, field.name) or contains(operator.optional, field.name)) then
      spec[field.name] = value
      at = at + 1
    elseif contains(operator.required, field.name) then
      return nil, ("%s: field %d is %q, wanted %s"):format(text, at, part, field.name)
    end
  end
  if at ~= #parts then return nil, ("%s: field %d is %q, which is unknown or out of order"):format(text, at, parts[at]) end
  return spec
end

return variant
