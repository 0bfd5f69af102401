-- Emits the one WGMMA instruction that a kernel uses: PTX ISA, "wgmma.mma_async".
local wgmma = {}

local template = [[
// The accumulators (64 x %(n)d of the warpgroup) += a . b; without accumulate they are overwritten.
__device__ __forceinline__ void wgmma(float (&d)[%(count)d], u64 a, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %%%(flag)d, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n%(n)dk16.f32.%(type)s.%(type)s "
                 "{%(registers)s}, "
                 "%%%(a)d, %%%(b)d, p, 1, 1, 0, %(transpose_b)d;\n}"
                 : %(outputs)s
                 : "l"(a), "l"(b), "r"(accumulate));
}
]]

function wgmma.wrapper(spec)
  local count = spec.bv // 2
  local registers, outputs = {}, {}
  for i = 0, count - 1 do
    registers[#registers + 1] = "%" .. i
    outputs[#outputs + 1] = ('"+f"(d[%d])'):format(i)
  end
  local values = {
    n = spec.bv, count = count, type = spec.dtype, a = count, b = count + 1, flag = count + 2,
    registers = table.concat(registers, ", "), outputs = table.concat(outputs, ", "),
    transpose_b = spec.dv and 1 or 0,
  }
  local text = template:gsub("%%%((%w+[_%w]*)%)[ds]", function(name) return tostring(values[name]) end)
  return (text:gsub("%%%%", "%%"))
end

return wgmma
