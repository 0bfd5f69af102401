-- Names of C++ in emitted sources.
local cxx = {}

cxx.types = { bf16 = "bf16", f16 = "f16", f32 = "float" }

return cxx
