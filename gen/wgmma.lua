-- Emits the wrapper of the WGMMA instructions: the product of one stage, as the instructions that step along its K, and the wait for its results (PTX ISA,
-- "wgmma.mma_async", "wgmma.wait_group"). One asm statement holds all instructions of a stage, because each statement's operands cost compilation time.
local arch = require "gen.arch"
local tile_config = require "gen.kernels.tile_config"

local wgmma = {}

local template = [[
// The accumulators (64 x %(n)d of the warpgroup) += a . b over the stage's K; without accumulate they are overwritten.%(offset_note)s
%(offset_template)s__device__ __forceinline__ void wgmma_stage(float (&d)[%(count)d], %(a_type)s, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\n.reg .b64 %(descriptors)s;\nsetp.ne.b32 p, %%%(flag)d, 0;\n"
%(instructions)s
                 "}"
                 :
%(outputs)s
                 : %(inputs)s, "l"(b), "r"(accumulate)%(offset_input)s);
}

// Waits for all products: before this the accumulators are no results, and no read of them may move above it.
__device__ __forceinline__ void wgmma_finish(float (&d)[%(count)d]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;"
                 :
%(outputs)s
                 :
                 : "memory");
}
]]

local instruction = [[
                 "%(advance)s\n"
                 "wgmma.mma_async.sync.aligned.m64n%(n)dk%(k)d.f32.%(type)s.%(type)s {"
%(registers)s
                 "}, %(a_operand)s, b, %(scale_d)s, 1, 1%(transposes)s;\n"]]

local hold = [[

// Behind a wait: until here products read these registers, which the compiler would else take for others once they were started.
__device__ __forceinline__ void wgmma_hold(u32 (&a)[16]) {
#pragma unroll
    for (int i = 0; i < 16; i++) asm volatile("" : "+r"(a[i])::"memory");
}
]]
local host_hold = "__device__ __twin__ void wgmma_hold(u32 (&a)[16]) { flp_host_wgmma_hold(a, 16); }\n"

-- The same for the host machine (the GPU simulator).
local host_template = [[
%(offset_template)s__device__ __twin__ void wgmma_stage(float (&d)[%(count)d], %(a_type)s, u64 b, int accumulate) {
    for (int i = 0; i < %(instruction_count)d; i++)
        %(host_call)s;
}
__device__ __twin__ void wgmma_finish(float (&)[%(count)d]) { flp_host_wgmma_wait(0); }
]]
local host_of_descriptor = "flp_host_wgmma(d, %(n)d, %(k)d, host_%(type)s, a + a_offset + i * %(a_step)d, b + i * %(b_step)d, accumulate || i > 0, %(host_transposes)s)"
local host_of_registers = "flp_host_wgmma_of_registers(d, %(n)d, %(k)d, host_%(type)s, &a[4 * i], b + i * %(b_step)d, accumulate || i > 0)"

local function fill(text, values)
  text = text:gsub("%%%((%w+[_%w]*)%)[ds]", function(name) return tostring(values[name]) end)
  return (text:gsub("%%%%", "%%"))
end

-- A stage holds 128 bytes of K. From one instruction to the next, the address of a K-major operand advances by 32 bytes, and that of an MN-major one by 16 rows
-- of 128 bytes; here in the descriptor's units of 16 bytes.
local instruction_count = 4
local function step(is_mn_major) return is_mn_major and 128 or 2 end

-- `count` operands as text, each in `format`, `line_items` to a line. quote: put around each line, where the text is part of a C string; else "".
local function operand_lines(count, format, line_items, quote)
  local lines = {}
  for first = 0, count - 1, line_items do
    local items = {}
    for i = first, math.min(first + line_items, count) - 1 do items[#items + 1] = format:format(i) end
    local comma = first + line_items < count and "," or ""
    lines[#lines + 1] = (" "):rep(17) .. quote .. table.concat(items, ", ") .. comma .. quote
  end
  return table.concat(lines, "\n")
end

-- The operand A: a descriptor or, with tf32, whose numbers are split in registers, the four words of each step's fragment.
local function descriptor_of_a(values)
  return {
    a_type = "u64 a", inputs = '"l"(a)', descriptors = "a, b", input_count = 1, host_call = fill(host_of_descriptor, values),
    offset_template = "template <int a_offset> ", offset_input = ', "n"(a_offset)',
    offset_note = " a_offset: is added to A's descriptor.",
    operand = function() return "a" end,
    advance = function(i, b)
      local from = i == 0 and ("%%%d, %%%d"):format(values.count, values.count + 3) or ("a, %d"):format(values.a_step)
      return ("add.s64 a, %s;\\n%s"):format(from, b)
    end,
  }
end

local function registers_of_a(values)
  return {
    a_type = "const u32 (&a)[16]", inputs = operand_lines(16, '"r"(a[%d])', 8, ""):gsub("^ +", ""), descriptors = "b", input_count = 16,
    host_call = fill(host_of_registers, values),
    operand = function(i)
      local first = values.count + 4 * i
      return ("{%%%d, %%%d, %%%d, %%%d}"):format(first, first + 1, first + 2, first + 3)
    end,
    advance = function(_, b) return b end,
  }
end

local function instructions(values, a)
  local lines = {}
  for i = 0, instruction_count - 1 do
    values.advance = a.advance(i, ("add.s64 b, %%%d, %d;"):format(values.count + a.input_count, i * values.b_step))
    values.a_operand, values.scale_d = a.operand(i), i == 0 and "p" or "1"
    lines[#lines + 1] = fill(instruction, values)
  end
  return table.concat(lines, "\n")
end

function wgmma.wrapper(spec)
  local count, f32 = spec.bv // 2, spec.dtype == "f32"
  local a_transposed, b_transposed = tile_config.transposed(spec)
  local values = {
    n = spec.bv, k = f32 and 8 or 16, count = count, type = f32 and "tf32" or spec.dtype,
    registers = operand_lines(count, "%%%d", 16, '"'), outputs = operand_lines(count, '"+f"(d[%d])', 8, ""),
    instruction_count = instruction_count, a_step = step(a_transposed), b_step = step(b_transposed),
    -- Which operands are MN-major; tf32 has no choice.
    transposes = f32 and "" or (", %d, %d"):format(a_transposed and 1 or 0, b_transposed and 1 or 0),
    host_transposes = ("%s, %s"):format(a_transposed, b_transposed),
  }
  local a = (f32 and registers_of_a or descriptor_of_a)(values)
  values.a_type, values.inputs, values.descriptors, values.host_call = a.a_type, a.inputs, a.descriptors, a.host_call
  values.offset_template, values.offset_input, values.offset_note = a.offset_template or "", a.offset_input or "", a.offset_note or ""
  values.flag = count + a.input_count + 1
  values.instructions = instructions(values, a)
  local is_host = arch.find(spec.arch).is_host
  return fill(is_host and host_template or template, values) .. (f32 and (is_host and host_hold or hold) or "")
end

return wgmma
