-- What the tile kernels say in their Config.
local accumulation = require "gen.accumulation"
local cxx = require "gen.cxx"

local config = {}

-- Which targets' derivatives a product adds. KEEP IN STEP: terms_along (templates/common/target_terms.cuh).
config.terms = { none = 0, each = 1, down = 2, across = 3 }

-- One list of those given, in their order.
function config.join(...)
  local joined = {}
  for _, list in ipairs { ... } do
    for _, entry in ipairs(list) do joined[#joined + 1] = entry end
  end
  return joined
end

-- What linear_logp and its backward are asked.
function config.options(spec)
  return {
    { "int", "hidden_size", spec.d }, { "bool", "has_bias", spec.bias ~= nil }, { "using", "bias_element", cxx.types[spec.bias or "f32"] },
    { "bool", "has_softcap", spec.softcap or false }, { "float", "correction", accumulation.correction(spec) },
    { "bool", "wants_argmax", spec.argmax or false }, { "bool", "wants_entropy", spec.entropy or false },
    { "bool", "wants_logit_sum", spec.logit_sum or false }, { "bool", "has_class_weights", spec.classes ~= nil },
    { "using", "class_element", cxx.types[spec.classes or "f32"] }, { "bool", "is_compact", spec.compact or false },
  }
end

-- swaps_hidden, swaps_weight: the operand's rows in memory are steps of the inner size.
function config.tile(spec, n, swaps_hidden, swaps_weight)
  return {
    { "using", "element", cxx.types[spec.dtype] }, { "int", "block_rows", spec.bm }, { "int", "block_vocab", spec.bv },
    { "int", "block_hidden", n.block_hidden }, { "int", "cluster", spec.cluster }, { "int", "stages", spec.stages },
    { "bool", "hidden_is_transposed", swaps_hidden or false }, { "bool", "weight_is_hidden_vocab", swaps_weight or false },
  }
end

-- Of Hopper's mainloop. steps_together: stages that are filled at once; several where few rows read the weight, once.
function config.hopper(spec, n, steps_together)
  return {
    { "int", "consumer_groups", n.consumer_groups }, { "int", "steps_together", steps_together },
    { "bool", "weight_is_read_once", steps_together > 1 },
    { "bool", "splits_operands", spec.dtype == "f32" }, { "int", "producer_registers", n.producer_registers },
    { "int", "splitter_registers", n.splitter_registers }, { "int", "consumer_registers", n.consumer_registers },
    { "int", "weight_box_columns", n.weight_box_columns }, { "int", "weight_box_rows", n.weight_box_rows },
    { "int", "fragment_columns", spec.bv },
  }
end

return config
