-- Emits the product of one stage, as the WGMMA instructions that step along its K, and the wait for its results: PTX ISA,
-- "wgmma.mma_async", "wgmma.wait_group". One statement holds them all: compilers take their time over each one's operands.
local arch = require "gen.arch"
local tile_config = require "gen.kernels.tile_config"

local wgmma = {}

local template = [[
// The accumulators (64 x %(n)d of the warpgroup) += a . b over the stage's K; without accumulate they are overwritten.
__device__ __forceinline__ void wgmma_stage(float (&d)[%(count)d], u64 a, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %%%(flag)d, 0;\n"
%(instructions)s
                 "}"
                 :
%(outputs)s
                 : "l"(a), "l"(b), "r"(accumulate));
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
                 "add.s64 a, %%%(a)d, %(a_offset)d;\nadd.s64 b, %%%(b)d, %(b_offset)d;\n"
                 "wgmma.mma_async.sync.aligned.m64n%(n)dk%(k)d.f32.%(type)s.%(type)s {"
%(registers)s
                 "}, a, b, %(scale_d)s, 1, 1%(transposes)s;\n"]]

-- Its twin for the host machine.
local host_template = [[
__device__ __twin__ void wgmma_stage(float (&d)[%(count)d], u64 a, u64 b, int accumulate) {
    for (int i = 0; i < %(instruction_count)d; i++)
        flp_host_wgmma(d, %(n)d, %(k)d, host_%(type)s, a + i * %(a_step)d, b + i * %(b_step)d, accumulate || i > 0, %(host_transposes)s);
}
__device__ __twin__ void wgmma_finish(float (&)[%(count)d]) { flp_host_wgmma_wait(0); }
]]

local function fill(text, values)
  text = text:gsub("%%%((%w+[_%w]*)%)[ds]", function(name) return tostring(values[name]) end)
  return (text:gsub("%%%%", "%%"))
end

-- A stage holds 128 bytes of K. Operands along K (K-major) are 32 bytes from one instruction to the next; across K they are 16 rows of 128 bytes,
-- both in the descriptor's units of 16 bytes.
local instruction_count = 4
local function step(is_mn_major) return is_mn_major and 128 or 2 end

local function instructions(values)
  local lines = {}
  for i = 0, instruction_count - 1 do
    values.a_offset, values.b_offset, values.scale_d = i * values.a_step, i * values.b_step, i == 0 and "p" or "1"
    lines[#lines + 1] = fill(instruction, values)
  end
  return table.concat(lines, "\n")
end

-- count operands, each by `format`, `line_items` a line. quote: around each line, whose text is then part of a string.
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

function wgmma.wrapper(spec)
  local count, f32 = spec.bv // 2, spec.dtype == "f32"
  local a_transposed, b_transposed = tile_config.transposed(spec)
  local values = {
    n = spec.bv, k = f32 and 8 or 16, count = count, type = f32 and "tf32" or spec.dtype, a = count, b = count + 1, flag = count + 2,
    registers = operand_lines(count, "%%%d", 16, '"'), outputs = operand_lines(count, '"+f"(d[%d])', 8, ""),
    instruction_count = instruction_count, a_step = step(a_transposed), b_step = step(b_transposed),
    -- Which operands are MN-major; tf32 has no choice.
    transposes = f32 and "" or (", %d, %d"):format(a_transposed and 1 or 0, b_transposed and 1 or 0),
    host_transposes = ("%s, %s"):format(a_transposed, b_transposed),
  }
  values.instructions = instructions(values)
  return fill(arch.find(spec.arch).is_host and host_template or template, values)
end

return wgmma
