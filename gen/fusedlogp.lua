-- The generator's face to C: select, emit, list, architectures, capability, define_token_loss, token_loss.
local arch = require "gen.arch"
local emit = require "gen.emit"
local list = require "gen.list"
local problem = require "gen.problem"
local select = require "gen.select"
local token_loss = require "gen.token_loss"
local variant = require "gen.variant"

local fusedlogp = {}

-- { path, reason, kernels = { { role, variant }, ... } }, or nil and the reason. read_template: as emit's.
function fusedlogp.select(problem_text, capability, backend, read_template)
  local p, reason = token_loss.resolve(read_template, problem.parse(problem_text))
  if not p then return nil, reason end
  return select.kernels(p, capability, backend)
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

fusedlogp.list = list.variants

-- true, or nil and the reason; the program's text, or nil and the reason.
fusedlogp.define_token_loss = token_loss.define
fusedlogp.token_loss = token_loss.program

function fusedlogp.architectures() return arch.names end

-- 10 x major + minor of the architecture's GPUs, or nil and the reason.
function fusedlogp.capability(name)
  local found, reason = arch.find(name)
  return found and found.capability, reason
end

return fusedlogp
