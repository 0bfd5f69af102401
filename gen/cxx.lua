-- Dtypes: their names in emitted sources, and their bytes.
local cxx = {}

cxx.names = { "bf16", "f16", "f32" } -- that a problem's inputs may have
cxx.types = { bf16 = "bf16", f16 = "f16", f32 = "float" }
cxx.bytes = { bf16 = 2, f16 = 2, f32 = 4 }

return cxx
