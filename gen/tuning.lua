-- Tunings: what stands in place of selection's own choice of tiles. Which there are, in which order they are tried, and how what was measured at one
-- shape serves another.
--
-- Canonical text: "" for selection's own; else role.field=number, joined by commas, roles and fields in alphabetic order:
--   tile.bm=128,tile.cluster=2,tile.group=8
-- group is no field of a variant: it says how many groups of rows a launch walks together through the columns. Nor is chunks a kernel's role: its numbers say
-- how wide the chunks are in which kernels are launched (runtime/operators/linear/chunk_tuning.h), which C offers and takes.
local arch = require "gen.arch"
local emit = require "gen.emit"
local model = require "gen.model"
local variant = require "gen.variant"

local tuning = {}

local largest_number = 65536

-- What stands in place of a role; of its fields, whether they decide a row's bits.
tuning.chunks = "chunks"
local chunk_fields = { borrowed = true, columns = true, rows = false, saved = true }

-- What chunks add to the numeric identity of the kernels.
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
    if place <= last then return nil, ("tuning %q: %s stands behind %s, wanted alphabetic order and none twice"):format(text, place, last) end
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

-- Fields that are tuned, in alphabetic order, and the values that they may take, legal or not. Those that would change a row's bits drop out by the
-- kernel's numeric identity, unless they are asked for.
local warps = { "w", { 2, 3, 4, 8, 12, 16, 17, 20, 24, 32 } }
-- bm, stages and wg: those of kernels with warpgroups of 128 rows, too.
local function tile_axes(bm, last)
  return {
    { "bm", bm }, { "bv", { 64, 128, 168, 192, 256 } }, { "cluster", { 1, 2 } }, { "group", powers(6) }, { "s", { 66, 108, 132, 198, 264 } },
    { "stages", { 2, 3, 4, 5, 6, 8 } }, last,
  }
end
local warpgroups = { "wg", { 64, 128 } }
local tiles, product_tiles = tile_axes({ 64, 128, 256 }, warpgroups), tile_axes({ 64, 128 }, warpgroups)
-- Bytes of a load: as many as the addresses allow, or fewer.
local widths = { "vec", { 2, 4, 8, 16 } }
local spaces = {
  linear_logp = tiles, linear_logp_save_exp = tiles, linear_logp_grad_logits = tiles, matrix_product = product_tiles,
  -- Of logits_logp powers of two are legal, and rows that a launch cuts in parts are summed alike in any.
  logits_logp = { widths, warps }, logits_logp_cluster = { { "cluster", { 2, 4, 8, 16 } }, widths, warps },
  logits_logp_gradient = { widths, warps }, logits_logp_fused = { widths, warps },
  logits_logp_fused_cluster = { { "cluster", { 1, 2, 4, 8 } }, warps },
  weighted_sum = { { "team", powers(8) }, widths }, weighted_sum_outer = { widths }, weighted_sum_tile = { widths },
}

-- What a field that is not written in a spec stands for: 64 rows a warpgroup, 16 bytes a load.
local unwritten = { wg = 64, vec = 16 }

-- A kernel's space: its fields of those, and group.
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

-- What a number means in a spec.
local function value_of(field, number) return number ~= unwritten[field] and number end

-- Addresses that allow loads of so many bytes allow no wider ones.
local function is_too_wide(spec, field, number) return field == "vec" and number > (spec.vec or unwritten.vec) end

-- Puts a tuning's fields into a spec, which is selection's own, and returns its group, 0 for none, or nil and the reason. items: as parse gives them.
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

-- Whether a kernel can be had: its own rules, and the shared memory of a block, which the defaults of some keep by their choice of numbers.
local function is_legal(spec)
  return emit.check(spec) and emit.kernel_of(spec).derive(spec).shared_bytes <= arch.find(spec.arch).shared_bytes
end

-- Calls visit(spec, group) for each legal member of spec's space whose bits are the default's, or for any with `numerics`. group: nil for the default; what
-- is legal does not depend on it. own: the spec that is selection's own.
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

-- The tuning that makes `changed` of spec; "" where nothing differs.
local function difference(spec, changed, group)
  local items = {}
  for _, axis in ipairs(space_of(spec)) do
    local name = axis[1]
    local value = name == "group" and group or name ~= "group" and (changed[name] or nil) ~= (spec[name] or nil) and (changed[name] or unwritten[name])
    if value then items[#items + 1] = ("%s.%s=%d"):format(spec.role, name, value) end
  end
  return table.concat(items, ",")
end

-- A group beyond all rows is that of all rows.
local function is_repeated(p, spec, group)
  local rows = spec.role == "weight_product" and p.v or p.n
  local row_groups = (rows + spec.bm * spec.cluster - 1) // (spec.bm * spec.cluster)
  return group >= 2 * row_groups
end

-- Whether a launch of so many rows has this kernel: logits' few rows take a cluster each, and the fused kernel takes their forward otherwise.
local function is_launched(p, spec, facts)
  if spec.role == "few_rows" or spec.role == "rows" and p.fused then return p.n <= facts.multiprocessors end
  return true
end

-- Fields that change a tile's time by a few percent: with the others alike it is the same tile.
local is_of_pace = { group = true, stages = true }

local function tile_of(spec)
  local numbers = {}
  for _, axis in ipairs(space_of(spec)) do
    if not is_of_pace[axis[1]] then numbers[#numbers + 1] = tostring(spec[axis[1]] or unwritten[axis[1]]) end
  end
  return table.concat(numbers, " ")
end

-- By so much the model may be wrong from one tile to another: it had 128 x 192 in turns 3 % behind 128 x 128 where they were 9 % ahead
-- (bench/results/NOTES.md).
local tiles_apart = 1.12
-- And what it must promise of a group before it counts for more than that which the launch chooses.
local groups_apart = 1.005

-- Into the order in which they are tried: of the tiles between which the model does not decide the fastest of each first, then the second of each; of the
-- others the fastest. own: the tile that is there already.
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

-- The `limit` tunings of one role that are tried first: { text, seconds } each, without the one that makes `spec` itself. default: what the texts change, a
-- spec that is selection's own.
local function of_role(p, default, spec, facts, numerics, limit)
  local found, own = {}, difference(default, spec, spec.group)
  if not is_launched(p, spec, facts) then return found end
  each(default, spec, numerics, function(changed, group)
    local text = difference(default, changed, group or spec.group)
    if text == own or group and is_repeated(p, changed, group) or not emit.serves(changed, p) then return end
    local seconds = model.seconds(p, changed, group, facts)
    found[#found + 1] = {
      text = text, role = spec.role, seconds = seconds, promised = group and seconds * groups_apart or seconds, tile = tile_of(changed),
      numerics = emit.kernel_of(changed).numerics(changed),
    }
  end)
  sort_by_turns(found, tile_of(spec))
  return table.move(found, 1, math.min(limit, #found), 1, {})
end

-- The specs of kernels as select gives them, with their roles.
function tuning.specs_of(kernels)
  local specs = {}
  for i, kernel in ipairs(kernels) do
    specs[i] = variant.parse(kernel.variant)
    specs[i].role = kernel.role
  end
  return specs
end

-- Whether the model knows one of kernels as select gives them; the others take little time beside it.
function tuning.is_modelled(kernels)
  for _, spec in ipairs(tuning.specs_of(kernels)) do
    if spaces[spec.operator] then return true end
  end
  return false
end

-- Whether a kernel's time counts in that of the whole: of those over logits that stand for each other, one.
local function counts(p, spec) return spaces[spec.operator] and spec.role ~= "few_rows" and not (spec.role == "rows" and p.fused) end

-- Seconds of kernels as select gives them, by the model. specs: theirs; facts: as model.known gives them.
function tuning.seconds(p, kernels, specs, facts)
  local seconds = 0
  for i, spec in ipairs(specs) do
    local group = kernels[i].group
    if counts(p, spec) then seconds = seconds + model.seconds(p, spec, group > 0 and group or nil, facts) end
  end
  return seconds
end

-- The text of a tuning's items, but for those of a role, with that role's text in their place.
local function replace_role(items, role, text)
  local list = {}
  for item in (text ~= "" and text .. "," or ""):gmatch("([^,]*),") do list[#list + 1] = item end
  for _, item in ipairs(items) do
    if item.role ~= role then list[#list + 1] = ("%s.%s=%d"):format(item.role, item.field, item.number) end
  end
  table.sort(list)
  return table.concat(list, ",")
end

-- Candidates of a problem whose kernels are `specs` with a tuning `base`, `defaults` without one: { text, seconds } each, base itself first; each other one
-- changes one role beside. seconds: of the whole, by the model. facts: as model.known gives them. limit: of a role.
function tuning.candidates(p, base, defaults, specs, facts, numerics, limit)
  local whole, alone = 0, {}
  for i, spec in ipairs(specs) do
    alone[i] = spaces[spec.operator] and model.seconds(p, spec, nil, facts) or 0
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

-- Tunings of one role by the arithmetic of its kernel: { numerics, ..., [numerics] = { text, ... } }, at most `most` each, those first that the model finds
-- fastest; selection's own is there without one, too.
local function by_numerics(p, spec, facts, most)
  local own = emit.kernel_of(spec).numerics(spec)
  local kinds = { own, [own] = { seconds = model.seconds(p, spec, nil, facts) } }
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

-- Those items of a tuning that its arithmetic takes.
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

-- One role's arithmetics that all of the problems can have, selection's own first: { role, text (of the items that decide), numerics, tries = { a list of
-- tunings for each problem } }, at most `limit`. Those first that one item decides on, since the model tells not all of them apart, and among these those
-- that it finds fastest over all: by the geometric mean.
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

-- The arithmetics that are to be tried for problems that differ in their rows, { p, specs } each: a list of { role, text, tries }, of each role
-- selection's own first. limit: tunings of a role for a problem, two of an arithmetic.
function tuning.arithmetics(problems, facts, limit)
  local all = {}
  for _, spec in ipairs(problems[1].specs) do
    local list = arithmetics_of(problems, spec.role, facts, math.max(limit // 2, 2), 2)
    if #list > 1 and list[1].text == "" then table.move(list, 1, #list, #all + 1, all) end
  end
  return all
end

return tuning
