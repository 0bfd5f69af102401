-- grad_bias of a chunk of the vocabulary: column sums.
local cxx = require "gen.cxx"

local kernel = {}

kernel.templates = { "types", "params/linear_logp_backward", "counted", "simt", "convert", "dependent_launch", "linear_logp_backward_bias" }
kernel.entry = "linear_logp_backward_bias"
kernel.parameters = { { "BackwardBiasParams", "params" } }

function kernel.derive()
  local threads = 256
  return { threads = threads, shared_bytes = threads * 4, registers = 64, blocks_per_multiprocessor = 65536 // (64 * threads) }
end

kernel.dependent_launch = true

function kernel.check() return true end

function kernel.config(spec) return { { "using", "element", cxx.types[spec.dtype] }, { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false } } end

function kernel.numerics() return "linear_logp_backward_bias.r1" end

return kernel
