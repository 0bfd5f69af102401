-- Fits the coefficients of the performance model (gen/model.lua) to times that were measured on a device, and reads fitted coefficients from text.
--
-- Canonical text: "" for the model's own; else kernels.coefficient=millionths, joined by commas, in alphabetic order:
--   hopper.l2=96000000,hopper.launch=3000000
local model = require "gen.model"

local calibration = {}

-- What is fitted: rates of the L2, the memory and the tensor cores, the time of a launch in microseconds, and a tile's clocks beyond its products.
local fitted = { "l2", "launch", "memory", "rate", "tail" }
-- The most that the logarithm of a coefficient may differ from that of the model's own: a measurement that asks for more is one of something else.
local farthest = math.log(20)
-- Regularisation: pulls coefficients towards the model's own, so that one on which no measurement depends keeps its value. The pull is weak: it moves a
-- coefficient that a few measurements determine to 1 % by far less than 1 %.
local stiffness = 3e-6
-- The part of a problem's mean error that does not count. The device's clock moves all times of a problem together, by more than the errors of its candidates
-- differ from each other.
local shared = 0.9

-- { hopper = { l2 = number, ... }, ... }, or nil and the reason.
function calibration.parse(text)
  local found, last = {}, ""
  for item in (text ~= "" and text .. "," or ""):gmatch("([^,]*),") do
    local kind, name, digits = item:match("^([a-z]+)%.([a-z0-9_]+)=([1-9]%d*)$")
    local own = kind and model.coefficients[kind]
    if not (own and own[name]) then return nil, ("calibration %q: got %q, wanted kernels.coefficient=millionths"):format(text, item) end
    local place = kind .. "." .. name
    if place <= last then return nil, ("calibration %q: got %s after %s, wanted alphabetical order without repetition"):format(text, place, last) end
    last = place
    found[kind] = found[kind] or {}
    found[kind][name] = tonumber(digits) * 1e-6
  end
  return found
end

-- A calibration is only read if this text is the same as when it was fitted: the model's own coefficients.
function calibration.identity()
  local items = {}
  for _, kind in ipairs { "hopper", "portable" } do
    for _, name in ipairs(fitted) do items[#items + 1] = ("%s.%s=%d"):format(kind, name, math.floor(model.coefficients[kind][name] * 1e6 + 0.5)) end
  end
  return table.concat(items, ",")
end

local function coefficients(kind, logs)
  local changed = {}
  for i, name in ipairs(fitted) do changed[name] = model.coefficients[kind][name] * math.exp(logs[i]) end
  return { [kind] = changed }
end

-- Two lists of the samples' errors, logarithms of predicted over measured times: first without the `shared` part of what the samples of a problem have in
-- common, then in full.
local function errors_of(samples, kind, logs, predict)
  local errors, own, calibrated = {}, {}, coefficients(kind, logs)
  local sums, counts = {}, {}
  for i, sample in ipairs(samples) do
    errors[i] = math.log(predict(sample, calibrated) / sample.seconds)
    sums[sample.problem], counts[sample.problem] = (sums[sample.problem] or 0) + errors[i], (counts[sample.problem] or 0) + 1
  end
  for i, sample in ipairs(samples) do own[i] = errors[i] - shared * sums[sample.problem] / counts[sample.problem] end
  return own, errors
end

local function cost_of(errors, logs)
  local cost = 0
  for _, e in ipairs(errors) do cost = cost + e * e end
  for _, x in ipairs(logs) do cost = cost + stiffness * x * x end
  return cost
end

-- Solves a x = b by elimination; a is symmetric and positive. Overwrites both.
local function solve(a, b)
  local n = #b
  for i = 1, n do
    for row = i + 1, n do
      local factor = a[row][i] / a[i][i]
      for column = i, n do a[row][column] = a[row][column] - factor * a[i][column] end
      b[row] = b[row] - factor * b[i]
    end
  end
  for i = n, 1, -1 do
    for column = i + 1, n do b[i] = b[i] - a[i][column] * b[column] end
    b[i] = b[i] / a[i][i]
  end
  return b
end

-- One step of the Levenberg-Marquardt method: the moved logs.
local function step(samples, kind, logs, errors, damping, predict)
  local n, slopes, a, b = #logs, {}, {}, {}
  for i = 1, n do
    local moved = table.move(logs, 1, n, 1, {})
    moved[i] = moved[i] + 1e-4
    slopes[i] = errors_of(samples, kind, moved, predict)
    for k = 1, #errors do slopes[i][k] = (slopes[i][k] - errors[k]) / 1e-4 end
  end
  for i = 1, n do
    a[i], b[i] = {}, -stiffness * logs[i]
    for j = 1, n do
      a[i][j] = 0
      for k = 1, #errors do a[i][j] = a[i][j] + slopes[i][k] * slopes[j][k] end
    end
    a[i][i] = (a[i][i] + stiffness) * (1 + damping)
    for k = 1, #errors do b[i] = b[i] - slopes[i][k] * errors[k] end
  end
  local moved = solve(a, b)
  for i = 1, n do moved[i] = math.max(-farthest, math.min(farthest, logs[i] + moved[i])) end
  return moved
end

local function sum_of_squares(errors)
  local sum = 0
  for _, e in ipairs(errors) do sum = sum + e * e end
  return sum
end

-- Fits the coefficients of one kind of kernels and appends them to items. Returns the sums of the squared errors (in full, errors_of) before and after.
local function fit_kind(samples, kind, predict, items)
  local logs, damping = {}, 1e-3
  for i = 1, #fitted do logs[i] = 0 end
  local errors, whole = errors_of(samples, kind, logs, predict)
  local before = sum_of_squares(whole)
  for _ = 1, 60 do
    local moved = step(samples, kind, logs, errors, damping, predict)
    local moved_errors, moved_whole = errors_of(samples, kind, moved, predict)
    if cost_of(moved_errors, moved) < cost_of(errors, logs) then
      logs, errors, whole, damping = moved, moved_errors, moved_whole, damping / 4
    else
      damping = damping * 4
    end
    if damping > 1e6 then break end
  end
  for i, name in ipairs(fitted) do
    local millionths = math.floor(model.coefficients[kind][name] * math.exp(logs[i]) * 1e6 + 0.5)
    items[#items + 1] = ("%s.%s=%d"):format(kind, name, math.max(1, millionths))
  end
  return before, sum_of_squares(whole)
end

-- samples: at least one { kind, problem, seconds, ... }, where kind is the kind of its kernels. predict(sample, calibrated): the seconds that the model
-- predicts. Returns the calibration's text, and the model's error before and after the fit: the root mean square of the logarithms of predicted over measured
-- times.
function calibration.fit(samples, predict)
  local items, before, after = {}, 0, 0
  for _, kind in ipairs { "hopper", "portable" } do
    local own = {}
    for _, sample in ipairs(samples) do own[#own + 1] = sample.kind == kind and sample or nil end
    if #own > 0 then
      local kind_before, kind_after = fit_kind(own, kind, predict, items)
      before, after = before + kind_before, after + kind_after
    end
  end
  return table.concat(items, ","), math.sqrt(before / #samples), math.sqrt(after / #samples)
end

return calibration
