-- gen/budget.lua: a block's shared memory and registers fit every architecture, and are aligned as the hardware requires.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local luaunit = require "luaunit"
local support = require "tests.gen.support"
local arch = require "gen.arch"
local budget = require "gen.budget"
local emit = require "gen.emit"
local variant = require "gen.variant"

TestBudget = {}

local registers_of_a_multiprocessor = 65536

-- Every variant that a prebuild of any architecture compiles, listed once for all tests.
local all

local function listed()
  if all then return all end
  all = {}
  for _, name in ipairs(arch.names) do
    for _, text in ipairs(support.list(name)) do
      local spec = variant.parse(text)
      luaunit.assertTrue(emit.check(spec), text)
      all[#all + 1] = { spec = spec, numbers = emit.kernel_of(spec).derive(spec), arch = arch.find(spec.arch), text = text }
    end
  end
  luaunit.assertTrue(#all >= 2 * #arch.names)
  return all
end

-- Calls visit(spec, numbers, arch, text) for each of these variants.
local function each_listed(visit)
  for _, one in ipairs(listed()) do visit(one.spec, one.numbers, one.arch, one.text) end
end

function TestBudget.test_the_limits_are_the_hardware_s()
  for _, name in ipairs(arch.names) do
    local facts = arch.find(name)
    luaunit.assertEquals({ name, facts.capability }, { name, tonumber(name:match("%d+")) })
    luaunit.assertEquals({ name, facts.shared_bytes }, { name, support.shared_kib[facts.capability] * 1024 })
  end
end

function TestBudget.test_the_table_and_the_names_agree()
  local count = 0
  for name in pairs(arch.table) do
    count = count + 1
    luaunit.assertTableContains(arch.names, name)
  end
  luaunit.assertEquals(count, #arch.names)
end

function TestBudget.test_shared_memory_fits()
  each_listed(function(_, n, facts, text) luaunit.assertTrue(n.shared_bytes <= facts.shared_bytes, text) end)
end

function TestBudget.test_threads_and_registers_fit()
  each_listed(function(_, n, _, text)
    luaunit.assertTrue(n.threads % 32 == 0 and n.threads <= 1024, text)
    luaunit.assertTrue(n.registers <= 255 and n.blocks_per_multiprocessor >= 1, text)
    -- A multiprocessor allocates a warp's registers in units of 256, which is 8 a thread.
    local block = (n.registers + 7) // 8 * 8 * n.threads
    luaunit.assertTrue(block * n.blocks_per_multiprocessor <= registers_of_a_multiprocessor, text)
  end)
end

-- PTX ISA, setmaxnreg: 24 to 256 in steps of 8; what all warpgroups request comes from the block's own registers.
function TestBudget.test_warpgroups_share_what_the_block_has()
  each_listed(function(spec, n, _, text)
    if (n.producer_registers or 0) == 0 then return end
    local splitters = n.splitter_registers > 0 and 1 or 0 -- with fp32
    for _, count in ipairs { n.producer_registers, splitters > 0 and n.splitter_registers or 24, n.consumer_registers } do
      luaunit.assertTrue(count % 8 == 0 and count >= 24 and count <= 256, text)
    end
    luaunit.assertEquals(n.threads, (1 + splitters + n.consumer_groups) * 128)
    local claimed = n.producer_registers + n.splitter_registers + n.consumer_groups * n.consumer_registers
    luaunit.assertTrue(claimed * 128 <= n.registers * n.threads, text)
    luaunit.assertTrue(n.consumer_registers >= spec.bv // 2 + 24, text)
  end)
end

-- Calls visit for each shape that the Hopper kernel accepts, not only for those that are selected.
local function each_hopper(visit)
  for _, dtype in ipairs { "bf16", "f16", "f32" } do
    for _, dv in ipairs { false, true } do
      for _, bm in ipairs { 64, 128 } do
        for bv = 64, 256, 64 do
          for cluster = 1, 2 do
            local spec = {
              operator = "linear_logp", dtype = dtype, d = 4096, bm = bm, bv = bv, s = 160, cluster = cluster, stages = 3,
              dv = dv or nil, arch = "sm_90a",
            }
            if emit.check(spec) then visit(spec, emit.kernel_of(spec).derive(spec), variant.format(spec)) end
          end
        end
      end
    end
  end
end

-- CUDA driver API, cuTensorMapEncodeTiled: a box has at most 256 elements a dimension and, with the 128-byte swizzle, rows of 128 bytes.
function TestBudget.test_tma_boxes_can_be_encoded_and_fill_a_stage()
  each_hopper(function(spec, n, text)
    luaunit.assertTrue(n.a_box_rows <= 256 and n.b_box_rows <= 256, text)
    luaunit.assertEquals({ n.block_inner * n.element_bytes, n.b_box_columns * n.element_bytes }, { 128, 128 })
    luaunit.assertEquals(n.a_box_rows, spec.bm)
    local boxes = spec.bv * n.block_inner / (n.b_box_columns * n.b_box_rows)
    luaunit.assertEquals({ text, boxes % spec.cluster }, { text, 0.0 })
  end)
end

-- The 128-byte swizzle repeats every 1024 bytes, so each box must begin at a multiple of 1024 bytes in its stage.
function TestBudget.test_stages_lie_at_multiples_of_the_swizzle()
  each_hopper(function(spec, n, text)
    local hidden, box = spec.bm * 128, n.b_box_columns * n.b_box_rows * n.element_bytes
    luaunit.assertEquals({ text, hidden % 1024, box % 1024, n.shared_bytes % 1024 }, { text, 0, 0, 0 })
    luaunit.assertTrue(n.shared_bytes >= spec.stages * (spec.bm + spec.bv) * 128 + 2 * 8 * spec.stages, text)
  end)
end

-- A tile is stored through two TMA boxes of 16 rows of 128 bytes for each consumer warp, each of which is a whole swizzle atom.
function TestBudget.test_a_hopper_kernel_that_stores_has_room_for_it()
  each_hopper(function(spec, n, text)
    local product = support.with(spec, { operator = "matrix_product", d = support.none, s = support.none, a_transposed = true, b_transposed = spec.dv, dv = support.none,
                                         out = "f32" })
    if not emit.check(product) then return end
    local m = emit.kernel_of(product).derive(product)
    local tickets = budget.takes_tickets(spec) and 1024 or 0 -- a product has none
    luaunit.assertEquals({ text, m.shared_bytes - n.shared_bytes + tickets }, { text, m.consumer_groups * 4 * 2 * 16 * 128 }) -- the boxes for the store
    product.targets = "in_rows"
    luaunit.assertEquals({ text, emit.kernel_of(product).derive(product).shared_bytes - m.shared_bytes }, { text, 1024 })
    luaunit.assertEquals(m.shared_bytes % 1024, 0)
    -- A transposed A is read across the inner size: a box has 128 bytes of A's rows by a stage's steps.
    luaunit.assertEquals({ text, m.a_box_rows * m.element_bytes }, { text, 128 })
  end)
end

function TestBudget.test_portable_stages_hold_whole_copies_of_every_thread()
  for _, operator in ipairs { "linear_logp", "linear_logp_grad_logits", "matrix_product" } do
    for _, dtype in ipairs { "bf16", "f16", "f32" } do
      for _, bm in ipairs { 64, 128 } do
        local spec = { operator = operator, dtype = dtype, d = 80, bm = bm, bv = 128, s = 80, cluster = 1, stages = 4, arch = "sm_80" }
        local n = emit.kernel_of(spec).derive(spec)
        luaunit.assertEquals(n.block_inner * n.element_bytes, 64)
        luaunit.assertEquals({ bm * 64 // 16 % n.threads, 128 * 64 // 16 % n.threads }, { 0, 0 })
        luaunit.assertEquals(n.threads, bm // n.warp_rows * (128 // n.warp_columns) * 32)
        luaunit.assertTrue(n.shared_bytes >= 4 * (bm + 128) * 64)
      end
    end
  end
end

-- Of the lean 16-bit kernels two blocks of 256 threads fit on a multiprocessor; other kernels may take all registers.
function TestBudget.test_two_lean_portable_blocks_share_the_registers()
  local spec = { operator = "matrix_product", dtype = "bf16", bm = 128, bv = 128, cluster = 1, stages = 4, out = "f32", arch = "sm_80" }
  for _, case in ipairs { { {}, 128, 2 }, { { vec = 4 }, 128, 2 }, { { vec = 2 }, 255, 1 }, { { dtype = "f32" }, 255, 1 } } do
    local changed = support.with(spec, case[1])
    local n = emit.kernel_of(changed).derive(changed)
    luaunit.assertEquals({ n.registers, n.blocks_per_multiprocessor }, { case[2], case[3] })
  end
end

support.run()
