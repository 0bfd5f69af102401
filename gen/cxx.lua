-- Dtypes: their names in emitted sources, and their bytes.
local cxx = {}

cxx.names = { "bf16", "f16", "f32" } -- the dtypes that a problem's inputs may have
cxx.wanted = table.concat(cxx.names, ", ", 1, #cxx.names - 1) .. " or " .. cxx.names[#cxx.names] -- the list of names, for messages
cxx.types = { bf16 = "bf16", f16 = "f16", f32 = "float" }
cxx.bytes = { bf16 = 2, f16 = 2, f32 = 4 }

return cxx
