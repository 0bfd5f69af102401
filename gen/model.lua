-- The performance model: predicts how long a kernel takes from the device's facts and a few coefficients, for the tensor cores, the L2 cache, memory, launches
-- and the tail of the last wave.
--
-- By its predictions the tuner orders candidates (gen/tuning.lua), and a ratio of times that was measured at one shape is transferred to another
-- (fusedlogp.transfer). No result depends on them.
local arch = require "gen.arch"
local cxx = require "gen.cxx"
local emit = require "gen.emit"

local model = {}

-- An H200's facts, which stand in for those of a device that are not known. memory: bytes a second.
model.facts = { multiprocessors = 132, clock_hz = 1.98e9, l2_bytes = 60 << 20, memory = 4.8e12 }

-- The coefficients for each kind of kernels:
--   flops   of 16-bit products with fp32 sums, by a multiprocessor in a clock
--   rate, two_groups, one_group   the part of these flops that a tile reaches is rate times two_groups (more than 64 rows) or one_group (64 rows)
--   l2      bytes that a multiprocessor reads from the L2 in a clock
--   memory  the part of the device's memory bandwidth that is reached
--   launch  the time of a launch, in microseconds
--   tail    clocks of a tile beyond its products
--   compute_stages, memory_stages     what few stages add to the time of a tile's products and of reading memory, over (stages - 1)^2
--   compute_cluster, memory_cluster   what each further block of a cluster adds to these, because blocks wait for each other
--   f32     the rate of fp32 products relative to 16-bit ones
-- All are as an H200 showed them: bench/results/2026-11-22-NVIDIA-H200-tunings.json. gen/calibration.lua fits some of them to other devices.
model.coefficients = {
  hopper = { flops = 4096, rate = 1, two_groups = 0.80, one_group = 0.565, l2 = 96, memory = 0.92, launch = 3, tail = 600,
             compute_stages = 0.1, memory_stages = 0.25, compute_cluster = 0.005, memory_cluster = 0.2, f32 = 1 / 6 },
  portable = { flops = 2048, rate = 1, two_groups = 0.62, one_group = 0.52, l2 = 96, memory = 0.88, launch = 3, tail = 600,
               compute_stages = 0.1, memory_stages = 0.25, compute_cluster = 0, memory_cluster = 0, f32 = 1 / 6 },
}

local function ceil_div(a, b) return (a + b - 1) // b end

-- The groups that a launch chooses (runtime/operators/linear/matrix_product_launch.c): default_group_bytes of A's rows stay in the L2 while all of B streams
-- past. If a row of a product's A has more than long_row_bytes, the launch walks squares of tiles instead. The forward and the logits' derivatives mostly have
-- a group that selection chose.
local default_group_bytes, long_row_bytes = 32 << 20, 8192

-- Blocks that share a multiprocessor. The numbers are cached, because a fit needs them again and again.
local shares = setmetatable({}, { __mode = "k" })
local function share_of(spec)
  shares[spec] = shares[spec] or emit.kernel_of(spec).derive(spec).blocks_per_multiprocessor or 1
  return shares[spec]
end

-- Bytes that a launch reads if it walks squares of tiles: only tiles that are computed at the same time share what they read.
local function bytes_in_squares(product, spec, group, workers, row_groups, tiles)
  local rows = spec.bm * (spec.cluster or 1)
  local walked = math.min(row_groups, group or math.max(1, math.floor((workers * spec.bv / rows) ^ 0.5)))
  local across = math.max(1, math.min(tiles, workers // walked))
  return (product.columns * ceil_div(row_groups, walked) + product.rows * ceil_div(tiles, across)) * product.inner * product.bytes
end

-- Bytes that a launch reads if it walks groups of rows: A's rows of a group are read once, except for the part that does not fit in the L2. That part is read
-- again, in the model for every second column tile.
local function bytes_in_groups(product, spec, group, facts, row_groups, tiles)
  local row_group_bytes = spec.bm * (spec.cluster or 1) * product.inner * product.bytes
  local fit = math.max(1, default_group_bytes // row_group_bytes)
  local walked = group or ceil_div(row_groups, ceil_div(row_groups, fit))
  local kept = math.min(1, 0.7 * facts.l2_bytes / (walked * row_group_bytes))
  return (product.columns * ceil_div(row_groups, walked) + product.rows * (1 + (1 - kept) * tiles * 0.5)) * product.inner * product.bytes
end

-- Seconds of a tile kernel. product: one of `products`, below; group: as in model.seconds; c: coefficients.
local function tile_seconds(product, spec, group, facts, c)
  local cluster = spec.cluster or 1
  local group_rows = spec.bm * cluster
  local row_groups, tiles = ceil_div(product.rows, group_rows), ceil_div(product.columns, spec.bv)
  local share = share_of(spec)
  local workers = math.max(1, facts.multiprocessors * share // cluster)
  local units = row_groups * tiles
  -- The forward's units are several tiles at first and single tiles at the end, so that at the end a worker is idle for less than a tile.
  local waves = units <= workers and 1 or spec.s and units / workers + 0.25 or ceil_div(units, workers)
  local rate = c.flops * c.rate * (spec.dtype == "f32" and c.f32 or 1) * (spec.bm > 64 and c.two_groups or c.one_group)
  local math_clocks = 2 * spec.bm * spec.bv * product.inner / rate * share
  local l2_clocks = (spec.bm + spec.bv / cluster) * product.inner * product.bytes / c.l2 * share
  local late = 1 / math.max(1, spec.stages - 1) ^ 2
  local tile_clocks = (math_clocks ^ 4 + l2_clocks ^ 4) ^ 0.25 * (1 + c.compute_stages * late + c.compute_cluster * (cluster - 1)) + c.tail
  local compute = waves * tile_clocks / facts.clock_hz

  local is_long = spec.operator == "matrix_product" and product.inner * product.bytes > long_row_bytes
  local bytes = product.out_bytes + (is_long and bytes_in_squares(product, spec, group, workers, row_groups, tiles)
    or bytes_in_groups(product, spec, group, facts, row_groups, tiles))
  local memory = bytes / (facts.memory * c.memory) * (1 + c.memory_stages * late + c.memory_cluster * (cluster - 1))
  return (compute ^ 8 + memory ^ 8) ^ 0.125 + c.launch * 1e-6
end

-- By role: the matrix product that a kernel computes. bytes: of an element; out_bytes: what it writes. The kernels of other roles are no products.
local products = {
  tile = function(p, bytes) return { rows = p.n, columns = p.v, inner = p.d, bytes = bytes, out_bytes = 0 } end,
  save_exp_tile = function(p, bytes) return { rows = p.n, columns = p.v, inner = p.d, bytes = bytes, out_bytes = 2 * p.n * p.v } end,
  grad_logits = function(p, bytes) return { rows = p.n, columns = p.v, inner = p.d, bytes = bytes, out_bytes = 0 } end,
  hidden_product = function(p, bytes) -- its parts lie side by side, as further columns
    local parts = p.parts or 1
    local out_bytes = p.n * p.d * (p.parts and parts * cxx.bytes.f32 or bytes)
    return { rows = p.n, columns = p.d * parts, inner = ceil_div(p.v, parts), bytes = bytes, out_bytes = out_bytes }
  end,
  weight_product = function(p, bytes) return { rows = p.v, columns = p.d, inner = p.n, bytes = bytes, out_bytes = p.v * p.d * bytes } end,
}

-- Completes a device's facts: a fact that is not known, 0 or nil, is taken from model.facts. calibrated: coefficients that replace the model's own, from
-- calibration.parse; or nil.
function model.known(facts, calibrated)
  local known = { coefficients = {} }
  for _, name in ipairs { "multiprocessors", "clock_hz", "l2_bytes", "memory" } do
    known[name] = (facts[name] or 0) > 0 and facts[name] or model.facts[name]
  end
  for _, kind in ipairs { "hopper", "portable" } do
    known.coefficients[kind] = setmetatable(calibrated and calibrated[kind] or {}, { __index = model.coefficients[kind] })
  end
  return known
end

-- The part by which a kernel that reads its input once is slower than the memory. Few warps (w) have few loads in flight; many leave few registers to each, and
-- the last blocks make a longer tail. Narrow loads (vec) take more instructions. If there are few rows, each needs many blocks (cluster). A team of threads is
-- best with four vectors of its row for each thread.
local function read_slower(p, spec, bytes)
  local slower = 0.01 * math.abs(math.log((spec.w or 8) / 12)) + 0.02 * math.log(16 / (spec.vec or 16))
  if spec.role == "few_rows" then slower = slower + 0.01 * math.log(16 / spec.cluster) end
  if spec.team then slower = slower + 0.02 * math.abs(math.log(p.d * bytes / 16 / spec.team / 4)) end
  return slower
end

-- Seconds of the kernel of one role. group: the row groups that the launch walks together, nil if it decides itself; facts: from model.known.
function model.seconds(p, spec, group, facts)
  local product = products[spec.role]
  local c = facts.coefficients[arch.find(spec.arch).kernels]
  local bytes = cxx.bytes[p.dtype]
  if product and spec.bm then return tile_seconds(product(p, bytes), spec, group, facts, c) end
  return p.n * (p.v or p.d) * bytes / (facts.memory * c.memory) * (1 + read_slower(p, spec, bytes)) + c.launch * 1e-6
end

return model
