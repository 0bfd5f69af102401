-- What the tensor cores' accumulation costs, and the factor that takes its mean back.
--
-- They add each 16 (or 8) products to the accumulator with truncation (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA
-- tensor cores, PeerJ Computer Science 7:e330, 2021), so a logit loses a share of itself that grows with D. Measured on an H200 with normal data,
-- against fp64, for wgmma and mma.sync alike: 1.1e-8 of the logit for each 16 of D at D = 256, 1.3e-8 at 1024, 1.5e-8 at 4096 and 8192; taken back
-- as 2^-26 = 1.49e-8. That halves the error of a logit (root mean square, D = 4096: 8.8e-6 to 4.3e-6). Architectures that were
-- not measured get no correction; nor does fp32, whose stages are summed by ordinary additions.
local arch = require "gen.arch"

local accumulation = {}

local measured = { sm_90 = true, sm_90a = true }

-- As C++ of integers and hexadecimal literals: a formatted float would carry the decimal point of the process' locale.
function accumulation.correction(spec)
  if spec.dtype == "f32" or not measured[arch.real_of(spec.arch) or spec.arch] then return "1.0f" end
  return ("1.0f + %d * 0x1p-30f"):format(spec.d)
end

return accumulation
