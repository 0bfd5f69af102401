-- weighted_sum's grad_w: adds the tiles' sums.
local arch = require "gen.arch"
local cxx = require "gen.cxx"

local kernel = {}

kernel.templates = { "types", "params/weighted_sum", "simt", "convert", "dependent_launch", "weighted_sum_combine" }
kernel.entry = "weighted_sum_combine"
kernel.parameters = { { "WeightedSumCombineParams", "params" } }

function kernel.derive() return { threads = 512, shared_bytes = 2048, registers = 64, blocks_per_multiprocessor = 2 } end

-- Its launch then overlaps the tile kernel's end: it waits itself, where there is an instruction for that.
function kernel.overlaps(spec) return arch.find(spec.arch).matrix == "wgmma" end

function kernel.check() return true end

function kernel.config(spec) return { { "using", "weight_gradient_element", cxx.types[spec.gw] } } end

function kernel.numerics(spec) return ("weighted_sum_combine.r1.gw_%s"):format(spec.gw) end

return kernel
