-- gen/calibration.lua: after a fit to a simulated device with other rates, the model has that device's rates and its order of candidates.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local lu = require "luaunit"
local calibration = require "gen.calibration"
local fusedlogp = require "gen.fusedlogp"
local model = require "gen.model"
local support = require "tests.gen.support"

TestCalibration = {}

-- The problems that `fusedlogp tune --probe` measures.
local probed = {
  "linear_logp:bf16:n4096:d2048:v131072", "linear_logp:bf16:n64:d4096:v128256", "linear_logp:bf16:n4096:d512:v32768", "linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16",
  "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16", "logits_logp_backward:bf16:n4096:v131072", "weighted_sum:bf16:n8192:d4096",
  "logits_logp_backward:bf16:n64:v32768",
}
local facts = { multiprocessors = 114, clock_hz = 1.755e9, l2_bytes = 50 << 20, memory = 2.04e12 }
local truth = { l2 = 52, launch = 5, memory = 0.81, rate = 0.84, tail = 1400 }

local function text_of(coefficients)
  local items = {}
  for _, name in ipairs { "l2", "launch", "memory", "rate", "tail" } do
    items[#items + 1] = ("hopper.%s=%d"):format(name, math.floor(coefficients[name] * 1e6 + 0.5))
  end
  return table.concat(items, ",")
end

local function candidates(problem, calibrated, limit, numerics)
  local known = setmetatable({ calibration = calibrated }, { __index = facts })
  return assert(fusedlogp.candidates(problem, 90, "auto", "", known, numerics or false, limit, support.read_template))
end

local state = 1
local function noise() -- from -1 to 1
  state = (state * 1103515245 + 12345) % 2147483648
  return state / 1073741824 - 1
end

-- Times as a device with these rates would give them: each median is up to 0.4 % off, and all times of a problem are up to 1 % off together, by the clock.
local function measure(numerics)
  local lines = {}
  for _, problem in ipairs(probed) do
    local drift = 1 + 0.01 * noise()
    for _, line in ipairs(candidates(problem, text_of(truth), 12, numerics)) do
      local time, tuning = line:match("^(%d+) %S+ (.*)$")
      lines[#lines + 1] = ("%d auto %s %s"):format(math.floor(tonumber(time) * drift * (1 + 0.004 * noise())), problem, tuning)
    end
  end
  return table.concat(lines, "\n")
end

function TestCalibration.test_a_device_s_rates_come_back()
  local found = assert(fusedlogp.calibrate(measure(true), 90, facts, support.read_template))
  local fitted = assert(calibration.parse(found[1])).hopper
  for _, name in ipairs { "l2", "launch", "memory", "rate", "tail" } do
    lu.assertTrue(math.abs(fitted[name] / truth[name] - 1) < (name == "tail" and 0.1 or 0.05), ("%s: %g, wanted %g"):format(name, fitted[name], truth[name]))
  end
  lu.assertTrue(tonumber(found[2]) > 100)
  lu.assertTrue(tonumber(found[3]) > 100000) -- the model's own coefficients are wrong by more than a tenth,
  lu.assertTrue(tonumber(found[4]) < 10000)  -- the calibrated ones by less than the noise
end

-- The times that the model predicts for all candidates of an untuned shape.
local function times_of(problem, calibrated)
  local times = {}
  for i, line in ipairs(candidates(problem, calibrated, 1000)) do
    local time, text = line:match("^(%d+) %S+ (.*)$")
    times[i] = { text = text, seconds = tonumber(time) }
    times[text] = times[i].seconds
  end
  return times
end

-- Of the pairs of candidates whose times in `there` differ by more than 3 %, the part that has the other order in `here`.
local function misordered(here, there)
  local pairs_there, wrong = 0, 0
  for i, one in ipairs(there) do
    for j = i + 1, #there do
      local other = there[j]
      if math.abs(math.log(one.seconds / other.seconds)) > 0.03 then
        pairs_there = pairs_there + 1
        if (one.seconds < other.seconds) ~= (here[one.text] < here[other.text]) then wrong = wrong + 1 end
      end
    end
  end
  return wrong / pairs_there
end

function TestCalibration.test_untuned_shapes_are_ordered_as_on_that_device()
  local found = assert(fusedlogp.calibrate(measure(false), 90, facts, support.read_template))
  for _, problem in ipairs { "linear_logp:bf16:n2048:d1024:v50304", "linear_logp:bf16:n1024:d4096:v128256" } do
    local there = times_of(problem, text_of(truth))
    local calibrated, own = misordered(times_of(problem, found[1]), there), misordered(times_of(problem, ""), there)
    lu.assertTrue(calibrated < 0.01 and calibrated < own, ("%s: %g, without it %g"):format(problem, calibrated, own))
  end
end

function TestCalibration.test_what_nothing_measured_shows_stays()
  local line = "9000000 auto logits_logp_backward:bf16:n64:v4096 "
  local fitted = calibration.parse(assert(fusedlogp.calibrate(line, 90, facts, support.read_template))[1]).hopper
  lu.assertAlmostEquals(fitted.rate, model.coefficients.hopper.rate, 1e-6)
  lu.assertTrue(fitted.launch > model.coefficients.hopper.launch)
end

function TestCalibration.test_what_cannot_be_had_is_left_out()
  local lines = "1000 auto weighted_sum:bf16:n64:d1024 \n1000 auto nonsense \n1000 auto weighted_sum:bf16:n64:d1024 sum.bm=64\n"
    .. "9 auto logits_logp:bf16:n64 \n0 auto weighted_sum:bf16:n64:d1024 \nnonsense"
  lu.assertEquals(assert(fusedlogp.calibrate(lines, 90, facts, support.read_template))[2], "1")
  support.assert_refused({ "nothing was measured" }, fusedlogp.calibrate("nonsense", 90, facts, support.read_template))
end

function TestCalibration.test_what_is_no_calibration_is_refused()
  lu.assertEquals(calibration.parse(""), {})
  lu.assertEquals(calibration.parse(calibration.identity()).portable.launch, 3)
  for _, text in ipairs { "hopper.l2", "hopper.l2=0", "hopper.wings=2", "penguin.l2=1", "hopper.memory=1,hopper.l2=1", "hopper.l2=1,hopper.l2=1" } do
    support.assert_refused({ "calibration" }, calibration.parse(text))
    support.assert_refused({ "calibration" }, fusedlogp.candidates(probed[1], 90, "auto", "", { calibration = text }, false, 2, support.read_template))
  end
end

support.run()
