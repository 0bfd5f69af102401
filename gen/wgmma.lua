-- Emits the one WGMMA instruction that a kernel uses, and the wait for its results: PTX ISA, "wgmma.mma_async", "wgmma.wait_group".
local wgmma = {}

local template = [[
// The accumulators (64 x %(n)d of the warpgroup) += a . b; without accumulate they are overwritten.
__device__ __forceinline__ void wgmma(float (&d)[%(count)d], u64 a, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %%%(flag)d, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n%(n)dk%(k)d.f32.%(type)s.%(type)s "
                 "{%(registers)s}, "
                 "%%%(a)d, %%%(b)d, p, 1, 1%(transposes)s;\n}"
                 : %(outputs)s
                 : "l"(a), "l"(b), "r"(accumulate));
}

// Waits for all products: before this the accumulators are no results, and no read of them may move above it.
__device__ __forceinline__ void wgmma_finish(float (&d)[%(count)d]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" : %(outputs)s::"memory");
}
]]

function wgmma.wrapper(spec)
  local count, f32 = spec.bv // 2, spec.dtype == "f32"
  local registers, outputs = {}, {}
  for i = 0, count - 1 do
    registers[#registers + 1] = "%" .. i
    outputs[#outputs + 1] = ('"+f"(d[%d])'):format(i)
  end
  local values = {
    n = spec.bv, k = f32 and 8 or 16, count = count, type = f32 and "tf32" or spec.dtype, a = count, b = count + 1, flag = count + 2,
    registers = table.concat(registers, ", "), outputs = table.concat(outputs, ", "),
    transposes = f32 and "" or spec.dv and ", 0, 1" or ", 0, 0", -- which operand is MN-major; tf32 has no choice
  }
  local text = template:gsub("%%%((%w+[_%w]*)%)[ds]", function(name) return tostring(values[name]) end)
  return (text:gsub("%%%%", "%%"))
end

return wgmma
