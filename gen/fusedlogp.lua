-- The functions of the generator that C calls: select, emit, list, left_out, architectures, ptx_architecture, capability, define_token_loss, token_loss; for
-- tunings identity, candidates, arithmetics, transfer, advice; for the performance model calibration_identity, calibrate.
local advice = require "gen.advice"
local arch = require "gen.arch"
local calibration = require "gen.calibration"
local emit = require "gen.emit"
local list = require "gen.list"
local model = require "gen.model"
local problem = require "gen.problem"
local select = require "gen.select"
local token_loss = require "gen.token_loss"
local tuning = require "gen.tuning"
local variant = require "gen.variant"

local fusedlogp = {}

-- { path, reason, kernels = { { role, variant, group }, ... } } (select.of says what these are), or nil and the reason. tuning_text: "" for none.
-- read_template(path): the file's text, or nil.
function fusedlogp.select(problem_text, capability, backend, tuning_text, read_template)
  local p, reason = token_loss.resolve(read_template, problem.parse(problem_text))
  if not p then return nil, reason end
  return select.kernels(p, capability, backend, tuning_text)
end

-- The selection without a tuning: the parsed problem, what select.kernels found, and the kernels' specs with their roles; or nil and the reason.
local function untuned(problem_text, capability, backend, read_template)
  local p, reason = token_loss.resolve(read_template, problem.parse(problem_text))
  local found
  if p then found, reason = select.kernels(p, capability, backend, "") end
  if not found then return nil, reason end
  return p, found, tuning.specs_of(found.kernels)
end

-- The numeric identity of kernels.
local function numerics_of(specs)
  local list = {}
  for i, spec in ipairs(specs) do list[i] = emit.kernel_of(spec).numerics(spec) end
  return table.concat(list, ";")
end

-- What a record of a tuning must agree with to be used: { arch, numerics, templates, selection }, or nil and the reason. The last two are texts to be hashed:
-- templates has the templates that the tuned kernels use, selection the variants that are selected without the tuning. tuning_text: "" for selection's own
-- choice.
function fusedlogp.identity(problem_text, capability, backend, tuning_text, read_template)
  local p, default = untuned(problem_text, capability, backend, read_template)
  if not p then return nil, default end
  local found, reason = select.kernels(p, capability, backend, tuning_text)
  if not found then return nil, reason end
  local specs, templates, selection = tuning.specs_of(found.kernels), {}, {}
  for i, spec in ipairs(specs) do templates[i] = emit.reached(spec, read_template) end
  for i, kernel in ipairs(default.kernels) do selection[i] = kernel.variant end
  return { arch = found.arch, numerics = numerics_of(specs) .. tuning.numerics_of_chunks(tuning.parse(tuning_text)), templates = table.concat(templates),
           selection = table.concat(selection, "\n") }
end

-- A device's facts as the model takes them, with the coefficients of its calibration; or nil and the reason.
local function known_facts(facts)
  local calibrated, reason = calibration.parse(facts.calibration or "")
  if not calibrated then return nil, reason end
  return model.known(facts, calibrated)
end

-- The candidates of a tuning run (gen/tuning.lua), as lines "picoseconds role tuning", in which picoseconds is the model's prediction; or nil and the reason.
-- tuning_text itself is the first; if it is "" and a tuning is advised (gen/advice.lua), that one is the second. Both have "-" for their role. Each of the
-- others changes one role. facts: { multiprocessors, clock_hz, l2_bytes, memory, calibration }; 0 or nil where one is not known. numerics: whether candidates
-- may change a row's bits. limit: the most candidates of a role.
function fusedlogp.candidates(problem_text, capability, backend, tuning_text, facts, numerics, limit, read_template)
  local p, default, defaults = untuned(problem_text, capability, backend, read_template)
  if not p then return nil, default end
  local found, reason = select.kernels(p, capability, backend, tuning_text)
  if not found then return nil, reason end
  local known
  known, reason = known_facts(facts)
  if not known then return nil, reason end
  local candidates, lines = tuning.candidates(p, tuning_text, defaults, tuning.specs_of(found.kernels), known, numerics, limit), {}
  local advised = tuning_text == "" and advice.text(p, defaults, known) or ""
  if advised ~= "" then
    local kernels = select.kernels(p, capability, backend, advised).kernels
    table.insert(candidates, 2, { role = "", text = advised, seconds = tuning.seconds(p, tuning.specs_of(kernels), known) })
  end
  for i, candidate in ipairs(candidates) do
    lines[i] = ("%d %s %s"):format(math.floor(candidate.seconds * 1e12), candidate.role == "" and "-" or candidate.role, candidate.text)
  end
  return lines
end

-- The candidates of a tuning run that may change a row's bits. problem_texts: problems that differ in their rows only, a line each. Returns lines, or nil and
-- the reason. A line "arithmetic ROLE TUNING" begins each arithmetic of a role: TUNING has only the fields that decide on it, and is "-" for selection's own,
-- the first one of its role. The lines "try PROBLEM TUNING" that follow say which tunings with this arithmetic to measure for which problem, numbered from 0.
function fusedlogp.arithmetics(problem_texts, capability, backend, facts, limit, read_template)
  local problems, lines = {}, {}
  local known, reason = known_facts(facts)
  if not known then return nil, reason end
  for text in problem_texts:gmatch("[^\n]+") do
    local p, found, specs = untuned(text, capability, backend, read_template)
    if not p then return nil, found end
    problems[#problems + 1] = { p = p, specs = specs }
  end
  for _, arithmetic in ipairs(tuning.arithmetics(problems, known, limit)) do
    lines[#lines + 1] = ("arithmetic %s %s"):format(arithmetic.role, arithmetic.text == "" and "-" or arithmetic.text)
    for i, tries in ipairs(arithmetic.tries) do
      for _, text in ipairs(tries) do lines[#lines + 1] = ("try %d %s"):format(i - 1, text) end
    end
  end
  return lines
end

-- The time that the model predicts with a tuning over the time without it; or nil and the reason. facts: from model.known.
local function ratio_of(problem_text, capability, backend, tuning_text, facts, read_template)
  local p, default, specs = untuned(problem_text, capability, backend, read_template)
  if not p then return nil, default end
  local tuned, reason = select.kernels(p, capability, backend, tuning_text)
  if not tuned then return nil, reason end
  return tuning.seconds(p, tuning.specs_of(tuned.kernels), facts) / tuning.seconds(p, specs, facts)
end

-- Transfers a measurement from one shape to another. near_millionths is, in millionths, the time with a tuning over the time without it, as measured for the
-- problem near_text. Returns the same ratio as it is to be expected for problem_text: the model's ratio for it, times the measured over the model's ratio for
-- near_text; or nil and the reason.
function fusedlogp.transfer(problem_text, capability, backend, tuning_text, near_text, near_millionths, facts, read_template)
  local known, here, reason
  known, reason = known_facts(facts)
  if not known then return nil, reason end
  here, reason = ratio_of(problem_text, capability, backend, tuning_text, known, read_template)
  if not here then return nil, reason end
  local there
  there, reason = ratio_of(near_text, capability, backend, tuning_text, known, read_template)
  if not there then return nil, reason end
  return math.floor(near_millionths * here / there + 0.5)
end

-- The default tuning for the device, which is used where no record applies (gen/advice.lua), "" for selection's own choice; or nil and the reason.
function fusedlogp.advice(problem_text, capability, backend, facts, read_template)
  local p, found, specs = untuned(problem_text, capability, backend, read_template)
  if not p then return nil, found end
  local known, reason = known_facts(facts)
  if not known then return nil, reason end
  return advice.text(p, specs, known)
end

-- A calibration is only read if this text is the same as when it was fitted.
fusedlogp.calibration_identity = calibration.identity

-- A line "picoseconds backend problem tuning" as a sample for calibration.fit; nil if there are no such kernels, or the model covers none of them.
local function sample_of(line, capability, read_template)
  local digits, backend, text, tuning_text = line:match("^([1-9]%d*) ([a-z0-9_]+) (%S+) ?(%S*)$")
  local p = digits and token_loss.resolve(read_template, problem.parse(text))
  local found = p and select.kernels(p, capability, backend, tuning_text)
  if not found or not tuning.is_modelled(found.kernels) then return nil end
  return { p = p, problem = text, kind = arch.find(found.arch).kernels, specs = tuning.specs_of(found.kernels),
           seconds = tonumber(digits) * 1e-12 }
end

-- Fits the model to measured times, lines "picoseconds backend problem tuning". Returns { calibration, samples, before, after }: the coefficients as text, the
-- number of samples, and the model's error before and after in millionths (calibration.fit); or nil and the reason.
function fusedlogp.calibrate(lines, capability, facts, read_template)
  local samples = {}
  for line in lines:gmatch("[^\n]+") do samples[#samples + 1] = sample_of(line, capability, read_template) end
  if #samples == 0 then return nil, "calibration: nothing was measured that the model knows" end
  local text, before, after = calibration.fit(samples, function(sample, calibrated)
    return tuning.seconds(sample.p, sample.specs, model.known(facts, calibrated))
  end)
  return { text, tostring(#samples), ("%d"):format(math.floor(before * 1e6 + 0.5)), ("%d"):format(math.floor(after * 1e6 + 0.5)) }
end

-- { source, manifest }, or nil, the reason and its kind: "malformed" (no variant string) or "illegal".
function fusedlogp.emit(variant_text, read_template)
  local spec, reason = variant.parse(variant_text)
  if not spec then return nil, reason, "malformed" end
  local legal
  legal, reason = emit.check(spec)
  if not legal then return nil, ("%s: %s"):format(variant_text, reason), "illegal" end
  return emit.source(spec, read_template)
end

-- An array of the comma-separated items, whole numbers in decimal digits as numbers; nil for nil.
local function items(text)
  if not text then return nil end
  local found = {}
  for item in (text .. ","):gmatch("([^,]*),") do found[#found + 1] = item:match "^%d+$" and math.tointeger(tonumber(item)) or item end
  return found
end

-- The variants that a prebuild compiles (gen/list.lua). dtypes, hidden_sizes: separated by commas, or nil for all.
function fusedlogp.list(arch_name, dtypes, hidden_sizes, read_template)
  return list.variants(arch_name, items(dtypes), items(hidden_sizes), read_template)
end

function fusedlogp.left_out(hidden_sizes) return list.left_out(items(hidden_sizes)) end

-- true, or nil and the reason.
fusedlogp.define_token_loss = token_loss.define

-- The program's text, or nil and the reason.
fusedlogp.token_loss = token_loss.program

-- The names of all architectures, separated by spaces.
function fusedlogp.architectures() return table.concat(arch.names, " ") end

-- The architecture whose kernels newer GPUs run from PTX.
function fusedlogp.ptx_architecture() return arch.ptx end

-- 10 x major + minor of the architecture's GPUs, or nil and the reason.
function fusedlogp.capability(name)
  local found, reason = arch.find(name)
  return found and found.capability, reason
end

return fusedlogp
