-- grad_hidden: rounded once, back in its rows.
local budget = require "gen.budget"
local cxx = require "gen.cxx"

local kernel = { dependent_launch = true }

kernel.templates = { "types", "params/linear_logp_backward", "simt", "convert", "streaming", "vector", "dependent_launch", "linear_logp_backward_finish" }
kernel.parameters = { { "BackwardFinishParams", "params" } }

function kernel.derive() return budget.of_threads(256, 0) end

-- dtype: of the sums, fp32 where it is not said; weight: its dtype, where the sums lack what the targets contribute.
function kernel.config(spec)
  return {
    { "using", "sum_element", cxx.types[spec.dtype or "f32"] }, { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false },
    { "bool", "adds_targets", spec.weight ~= nil }, { "using", "weight_element", cxx.types[spec.weight or "f32"] },
    { "bool", "weight_is_hidden_vocab", spec.dv or false },
  }
end

function kernel.numerics() return "linear_logp_backward_finish.r1" end

function kernel.about(spec)
  return {
    computes = ("grad_hidden[row, D] %s= the sums of its place, rounded once%s; 0 for rows that are not valid"):format(
      spec.adds and "+" or "", spec.weight and ", with the target's derivative . its row of the weight" or ""),
    grid = "any number of blocks", threads = "vectors of 16 bytes in turn",
  }
end

return kernel
