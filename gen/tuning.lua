-- Tunings (autotuner configurations) replace fields of the kernels that selection chooses. This module has their text, the candidates of a tuning run in the
-- order in which they are tried, and the model's time for a problem with a tuning.
--
-- Canonical text: "" for selection's own; else role.field=number, joined by commas, roles and fields in alphabetic order:
--   tile.bm=128,tile.cluster=2,tile.group=8
-- group is no field of a variant: it says how many row groups a launch walks together through the columns. chunks is no kernel's role: its fields say how large
-- the chunks are in which kernels are launched. C offers and applies them (runtime/operators/linear/chunk_tuning.h).
local arch = require "gen.arch"
local emit = require "gen.emit"
local model = require "gen.model"
local variant = require "gen.variant"

local tuning = {}

local largest_number = 65536

-- The word that takes the place of a role, and its fields: true for those that decide on a row's bits.
tuning.chunks = "chunks"
local chunk_fields = { borrowed = true, columns = true, rows = false, saved = true }

-- What a tuning's chunks add to the numeric identity of the kernels.
function tuning.numerics_of_chunks(items)
  local text = ""
  for _, item in ipairs(items) do
    if item.role == tuning.chunks and chunk_fields[item.field] then text = ("%s;%s.%s=%d"):format(text, item.role, item.field, item.number) end
  end
  return text
end

-- A list of { role, field, number }, or nil and the reason.
function tuning.parse(text)
  local items, last = {}, ""
  for item in (text ~= "" and text .. "," or ""):gmatch("([^,]*),") do
    local role, field, digits = item:match("^([a-z_]+)%.([a-z]+)=([1-9]%d*)$")
    local number = digits and math.tointeger(tonumber(digits))
    if not number or number > largest_number then
      return nil, ("tuning %q: got %q, wanted role.field=number, numbers from 1 to %d"):format(text, item, largest_number)
    end
    local place = role .. "." .. field
    if place <= last then return nil, ("tuning %q: got %s after %s, wanted alphabetical order without repetition"):format(text, place, last) end
    if role == tuning.chunks and chunk_fields[field] == nil then return nil, ("tuning %q: %s have no field %s that is tuned"):format(text, role, field) end
    last = place
    items[#items + 1] = { role = role, field = field, number = number }
  end
  return items
end

local function powers(last)
  local list = {}
  for i = 0, last do list[#list + 1] = 1 << i end
  return list
end

-- The tuned fields of each kernel, in alphabetic order, and the values that they may take, legal or not (`each` sorts these out). A value that would change a
-- row's bits changes the kernel's numeric identity, by which it is left out, unless such tunings are requested.
local warps = { "w", { 2, 3, 4, 8, 12, 16, 17, 20, 24, 32 } }
-- bm, stages and wg include the values of kernels with warpgroups of 128 rows.
local function tile_axes(bm, last)
  return {
    { "bm", bm }, { "bv", { 64, 128, 168, 192, 256 } }, { "cluster", { 1, 2 } }, { "group", powers(6) }, { "s", { 66, 108, 132, 198, 264 } },
    { "stages", { 2, 3, 4, 5, 6, 8 } }, last,
  }
end
local warpgroups = { "wg", { 64, 128 } }
local tiles, product_tiles = tile_axes({ 64, 128, 256 }, warpgroups), tile_axes({ 64, 128 }, warpgroups)
-- Bytes of a load: the most that the addresses allow, or fewer.
local widths = { "vec", { 2, 4, 8, 16 } }
local spaces = {
  linear_logp = tiles, linear_logp_save_exp = tiles, linear_logp_grad_logits = tiles, matrix_product = product_tiles,
  -- logits_logp: only powers of two of `w` are legal. A row that a launch cuts into parts is summed in the same way with each of them.
  logits_logp = { widths, warps }, logits_logp_cluster = { { "cluster", { 2, 4, 8, 16 } }, widths, warps },
  logits_logp_gradient = { widths, warps }, logits_logp_fused = { widths, warps },
  logits_logp_fused_cluster = { { "cluster", { 1, 2, 4, 8 } }, warps },
  weighted_sum = { { "team", powers(8) }, widths }, weighted_sum_outer = { widths }, weighted_sum_tile = { widths },
}

-- The values of fields that a spec leaves out: 64 rows a warpgroup, 16 bytes a load.
local unwritten = { wg = 64, vec = 16 }

-- The fields of `spaces` that a variant has, and group.
local function space_of(spec)
  local space = {}
  for _, axis in ipairs(spaces[spec.operator] or {}) do
    if axis[1] == "group" or unwritten[axis[1]] or spec[axis[1]] then space[#space + 1] = axis end
  end
  return space
end

local function has(space, field)
  for _, axis in ipairs(space) do
    if axis[1] == field then return true end
  end
end

-- A number as a spec has it: false for one that is left out.
local function value_of(field, number) return number ~= unwritten[field] and number end

-- spec: selection's own, whose loads are as wide as the addresses allow.
local function is_too_wide(spec, field, number) return field == "vec" and number > (spec.vec or unwritten.vec) end

-- Puts a tuning's fields for the spec's role into the spec, which must be selection's own, and returns the tuning's group for this role, 0 if it has none; or
-- nil and the reason. items: from tuning.parse.
function tuning.apply(items, spec)
  local group, space = 0, space_of(spec)
  for _, item in ipairs(items) do
    if item.role == spec.role then
      if not has(space, item.field) then return nil, ("tuning: %s has no field %s that is tuned"):format(spec.operator, item.field) end
      if is_too_wide(spec, item.field, item.number) then
        return nil, ("tuning: %s.vec=%d: the addresses allow loads of %d bytes"):format(spec.role, item.number, spec.vec)
      end
      if item.field == "group" then group = item.number else spec[item.field] = value_of(item.field, item.number) end
    end
  end
  return group
end

local function changed_copy(from, name, value) return setmetatable({ [name] = value }, { __index = from }) end

-- Whether a variant is legal: the kernel's own rules, and a block's shared memory, which some of these rules leave out because selection's numbers keep to it.
local function is_legal(spec)
  return emit.check(spec) and emit.kernel_of(spec).derive(spec).shared_bytes <= arch.find(spec.arch).shared_bytes
end

-- Calls visit(changed, group) for each legal variant in the space of spec that gives a row the same bits as spec or, with `numerics`, any bits. group: nil for
-- that of spec; what is legal does not depend on it. own: selection's own spec.
local function each(own, spec, numerics, visit)
  local space, identity = space_of(spec), emit.kernel_of(spec).numerics(spec)
  local groups = {}
  local function fill(i, changed)
    if i > #space then
      if not is_legal(changed) or not numerics and emit.kernel_of(changed).numerics(changed) ~= identity then return end
      visit(changed, nil)
      for _, group in ipairs(groups) do visit(changed, group) end
    elseif space[i][1] == "group" then
      groups = space[i][2]
      fill(i + 1, changed)
    else
      local name, values = space[i][1], space[i][2]
      for _, value in ipairs(values) do
        if not is_too_wide(own, name, value) then fill(i + 1, changed_copy(changed, name, value_of(name, value))) end
      end
    end
  end
  fill(1, spec)
end

-- The text of the tuning that turns spec into `changed` with this group; "" if nothing differs. Without a group in the text, the kernel keeps that of spec.
local function difference(spec, changed, group)
  local items = {}
  for _, axis in ipairs(space_of(spec)) do
    local name = axis[1]
    local own, value = spec[name] or nil, changed[name] or nil
    if name == "group" then value = group or own end
    if value ~= own then items[#items + 1] = ("%s.%s=%d"):format(spec.role, name, value or unwritten[name]) end
  end
  return table.concat(items, ",")
end

-- Whether the next smaller group has all row groups already. Groups are powers of two, and any that has all row groups means the same launch.
local function is_repeated(p, spec, group)
  local rows = spec.role == "weight_product" and p.v or p.n
  local row_groups = (rows + spec.bm * spec.cluster - 1) // (spec.bm * spec.cluster)
  return group >= 2 * row_groups
end

-- Whether a call of so many rows may launch this kernel. Of logits_logp's kernels, few_rows (a cluster for each row) is for few rows alone; so is `rows` in a
-- fused backward, where the fused kernel computes the forward of more rows. KEEP IN STEP, but for what depends on a kernel's clusters:
-- flp_logits_logp_forward_choose and flp_logits_logp_shape_fused (runtime/operators/logits/logits_logp_plan.c). What the plan does not launch is not timed.
-- Rows that are too long for the fused kernel, of a million elements, have no candidates of `rows`.
local function is_launched(p, spec, facts)
  if spec.role == "few_rows" or spec.role == "rows" and p.fused then return p.n <= facts.multiprocessors end
  return true
end

-- Fields that change a tile's time by a few percent only. Candidates that differ in nothing else have the same tile.
local is_of_pace = { group = true, stages = true }

local function tile_of(spec)
  local numbers = {}
  for _, axis in ipairs(space_of(spec)) do
    if not is_of_pace[axis[1]] then numbers[#numbers + 1] = tostring(spec[axis[1]] or unwritten[axis[1]]) end
  end
  return table.concat(numbers, " ")
end

-- The factor by which the model may be wrong about one tile relative to another: where it predicted that ping-pong tiles of 128 x 192 were 3 % slower than 128
-- x 128, they were 9 % faster (bench/results/NOTES.md).
local tiles_apart = 1.12
-- The factor by which a group must be predicted to be faster than selection's or the launch's own choice before it is preferred to it.
local groups_apart = 1.005

-- Puts candidates into the order in which they are tried. Tiles that the model puts within 12 % of the fastest take turns: first the best candidate of each,
-- then the second of each, and so on. The rest follow by predicted time. own: the tile of the current tuning, of which one candidate is known already.
local function sort_by_turns(found, own)
  local function by(field)
    table.sort(found, function(a, b)
      if a[field] ~= b[field] then return a[field] < b[field] end
      if a.promised ~= b.promised then return a.promised < b.promised end
      return a.text < b.text
    end)
  end
  by "promised"
  local had = { [own] = 1 }
  for _, candidate in ipairs(found) do
    local before = had[candidate.tile] or 0
    had[candidate.tile] = before + 1
    candidate.turn = candidate.promised <= tiles_apart * found[1].promised and before or math.maxinteger
  end
  by "turn"
end

-- The first `limit` candidates of one role, in the order in which they are tried: { text, seconds, ... } each. The one that results in `spec` itself is left
-- out. default: selection's own spec, which the texts change.
local function of_role(p, default, spec, facts, numerics, limit)
  local found, own = {}, difference(default, spec, spec.group)
  if not is_launched(p, spec, facts) then return found end
  each(default, spec, numerics, function(changed, group)
    if group and (group == spec.group or is_repeated(p, changed, group)) then return end
    local text = difference(default, changed, group or spec.group)
    if text == own or not emit.serves(changed, p) then return end
    local seconds = model.seconds(p, changed, group or spec.group, facts)
    found[#found + 1] = {
      text = text, role = spec.role, seconds = seconds, promised = group and seconds * groups_apart or seconds, tile = tile_of(changed),
      numerics = emit.kernel_of(changed).numerics(changed),
    }
  end)
  sort_by_turns(found, tile_of(spec))
  return table.move(found, 1, math.min(limit, #found), 1, {})
end

-- The specs of a selection's kernels, with their roles and, where the launch does not decide, the row groups that it walks together.
function tuning.specs_of(kernels)
  local specs = {}
  for i, kernel in ipairs(kernels) do
    specs[i] = variant.parse(kernel.variant)
    specs[i].role, specs[i].group = kernel.role, kernel.group > 0 and kernel.group or nil
  end
  return specs
end

-- Whether the model covers any of a selection's kernels. Those that it does not cover take little time.
function tuning.is_modelled(kernels)
  for _, spec in ipairs(tuning.specs_of(kernels)) do
    if spaces[spec.operator] then return true end
  end
  return false
end

-- Whether a kernel's time counts as a part of the problem's. Of logits_logp's kernels that are alternatives to each other, one counts.
local function counts(p, spec) return spaces[spec.operator] and spec.role ~= "few_rows" and not (spec.role == "rows" and p.fused) end

-- The seconds that the model predicts for a selection's kernels. specs: of these kernels, from tuning.specs_of; facts: from model.known.
function tuning.seconds(p, specs, facts)
  local seconds = 0
  for _, spec in ipairs(specs) do
    if counts(p, spec) then seconds = seconds + model.seconds(p, spec, spec.group, facts) end
  end
  return seconds
end

-- The text of a tuning in which `text` takes the place of a role's items. items: of the tuning.
local function replace_role(items, role, text)
  local list = {}
  for item in (text ~= "" and text .. "," or ""):gmatch("([^,]*),") do list[#list + 1] = item end
  for _, item in ipairs(items) do
    if item.role ~= role then list[#list + 1] = ("%s.%s=%d"):format(item.role, item.field, item.number) end
  end
  table.sort(list)
  return table.concat(list, ",")
end

-- The candidates of a problem's tuning run: { text, role, seconds } each. `base`, a tuning's text, is the first. Each other one changes one role of it.
-- seconds: of all kernels together, by the model. specs, defaults: the kernels' specs with `base` and without a tuning. facts: from model.known. numerics:
-- whether candidates may change a row's bits. limit: the most candidates of a role.
function tuning.candidates(p, base, defaults, specs, facts, numerics, limit)
  local whole, alone = 0, {}
  for i, spec in ipairs(specs) do
    alone[i] = spaces[spec.operator] and model.seconds(p, spec, spec.group, facts) or 0
    whole = whole + (counts(p, spec) and alone[i] or 0)
  end
  local list = { { text = base, role = "", seconds = whole } }
  for i, spec in ipairs(specs) do
    for _, candidate in ipairs(spaces[spec.operator] and of_role(p, defaults[i], spec, facts, numerics, limit) or {}) do
      candidate.text = replace_role(tuning.parse(base), spec.role, candidate.text)
      candidate.seconds = whole - alone[i] + candidate.seconds
      list[#list + 1] = candidate
    end
  end
  return list
end

-- ---- what changes a row's bits ----

-- Tunings of one role by the numeric identity of its kernel: { numerics, ..., [numerics] = { text, ..., seconds }, ... }. Each identity has at most `most`
-- texts, in the order in which they are tried; seconds are those of the first. Selection's own identity comes first, and is there even without a text.
local function by_numerics(p, spec, facts, most)
  local own = emit.kernel_of(spec).numerics(spec)
  local kinds = { own, [own] = { seconds = model.seconds(p, spec, spec.group, facts) } }
  for _, candidate in ipairs(of_role(p, spec, spec, facts, true, math.maxinteger)) do
    if not kinds[candidate.numerics] then
      kinds[#kinds + 1] = candidate.numerics
      kinds[candidate.numerics] = { seconds = candidate.seconds }
    end
    local kind = kinds[candidate.numerics]
    if #kind < most then kind[#kind + 1] = candidate.text end
  end
  return kinds
end

local function with(spec, text)
  local changed = setmetatable({}, { __index = spec })
  if tuning.apply(tuning.parse(text), changed) and is_legal(changed) then return changed end
end

-- The items of a tuning that decide on its arithmetic: without any one of them the kernel would have another numeric identity, or would not be legal.
local function deciding(spec, text, numerics)
  local items, i = {}, 1
  for item in (text .. ","):gmatch("([^,]*),") do items[#items + 1] = item end
  while i <= #items do
    local rest = table.move(items, i + 1, #items, i, table.move(items, 1, i - 1, 1, {}))
    local changed = with(spec, table.concat(rest, ","))
    if changed and emit.kernel_of(changed).numerics(changed) == numerics then items = rest else i = i + 1 end
  end
  return table.concat(items, ",")
end

local function spec_of(specs, role)
  for _, spec in ipairs(specs) do
    if spec.role == role then return spec end
  end
end

-- The arithmetics (numeric identities) of one role that are possible for all of the problems, at most `limit`: { role, text, numerics, tries } each. text: the
-- items that decide on it, "" for selection's own, which comes first. tries: for each problem a list of at most `most` tunings. Arithmetics that fewer items
-- decide on come first, since the model cannot tell all of them apart. Those with equally many are in the order of their predicted times, by the geometric mean
-- over the problems.
local function arithmetics_of(problems, role, facts, limit, most)
  local kinds, list, own = {}, {}, {}
  for i, problem in ipairs(problems) do
    local spec = spec_of(problem.specs, role)
    if not spec or not spaces[spec.operator] then return {} end
    kinds[i], own[i] = by_numerics(problem.p, spec, facts, most), emit.kernel_of(spec).numerics(spec)
  end
  local first = spec_of(problems[1].specs, role)
  for _, name in ipairs(kinds[1]) do
    local is_own = name == own[1]
    local kind = { role = role, numerics = name, text = is_own and "" or deciding(first, kinds[1][name][1], name), tries = {}, score = 0 }
    kind.items = is_own and 0 or #tuning.parse(kind.text)
    for i, problem in ipairs(problems) do
      local changed = kinds[i][name] and with(spec_of(problem.specs, role), kind.text)
      if not changed or emit.kernel_of(changed).numerics(changed) ~= name then kind = nil break end
      kind.tries[i], kind.score = kinds[i][name], kind.score + math.log(kinds[i][name].seconds)
    end
    list[#list + 1] = kind
  end
  table.sort(list, function(a, b)
    if a.items ~= b.items then return a.items < b.items end
    if a.score ~= b.score then return a.score < b.score end
    return a.text < b.text
  end)
  return table.move(list, 1, math.min(limit, #list), 1, {})
end

-- The arithmetics to try for problems that differ in their rows only, { p, specs } each: a list of { role, text, tries }, in which each role's begin with
-- selection's own. limit: tunings of a role for a problem; there are up to two for each arithmetic.
function tuning.arithmetics(problems, facts, limit)
  local all = {}
  for _, spec in ipairs(problems[1].specs) do
    local list = arithmetics_of(problems, spec.role, facts, math.max(limit // 2, 2), 2)
    if #list > 1 and list[1].text == "" then table.move(list, 1, #list, #all + 1, all) end
  end
  return all
end

return tuning
