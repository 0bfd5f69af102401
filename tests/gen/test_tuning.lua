-- gen/tuning.lua: which tunings are candidates, that they keep a row's bits, and which tunings are refused.
package.path = (os.getenv("FUSEDLOGP_SRCDIR") or ".") .. "/?.lua;" .. package.path
local lu = require "luaunit"
local fusedlogp = require "gen.fusedlogp"
local emit = require "gen.emit"
local model = require "gen.model"
local problem = require "gen.problem"
local support = require "tests.gen.support"
local tuning = require "gen.tuning"
local variant = require "gen.variant"

TestTuning = {}

local forward = "linear_logp:bf16:n4096:d2048:v131072"
local problems = {
  forward, "linear_logp:f32:n64:d256:v50257", "linear_logp_backward:bf16:n1024:d512:v32768:gh_bf16:gw_bf16",
  "linear_cross_entropy:bf16:n1024:d512:v32768:gh_bf16:gw_bf16", "logits_logp_backward:bf16:n4096:v131072", "logits_logp_backward:f32:n64:v131072:fused",
  "weighted_sum:bf16:n4096:d4096", "weighted_sum_backward:f16:n4096:d4096:gx_f16:gw_f16", "logits_logp:bf16:n4096:v131072", "logits_logp:bf16:n8:v131072",
  "logits_logp:bf16:n4096:v50257", "weighted_sum:bf16:n4096:d4097",
}

local function candidates(problem, capability, numerics, limit)
  return assert(fusedlogp.candidates(problem, capability, "auto", "", {}, numerics or false, limit or 6, support.read_template))
end

local function parts(line)
  local time, role, text = line:match("^(%d+) ([a-z_-]+) (.*)$")
  return math.tointeger(tonumber(time)), role, text
end

local function numerics_of(found)
  local list = {}
  for i, kernel in ipairs(found.kernels) do
    local spec = variant.parse(kernel.variant)
    list[i] = emit.kernel_of(spec).numerics(spec)
  end
  return table.concat(list, ";")
end

function TestTuning.test_a_tuning_changes_what_it_names()
  local found = assert(fusedlogp.select(forward, 90, "auto", "tile.bm=64,tile.cluster=1,tile.group=8,tile.wg=64"))
  lu.assertEquals(found.kernels[1].variant, "linear_logp.bf16.d2048.bm64.bv168.s132.c1.p4.sm_90a")
  lu.assertEquals(found.kernels[1].group, 8)
  lu.assertEquals(found.kernels[2].group, 0)
  lu.assertEquals(found.kernels[2].variant, fusedlogp.select(forward, 90, "auto", "").kernels[2].variant)
end

-- The row stays in the cluster's shared memory. With too little of it the kernel would read beyond its end.
function TestTuning.test_a_cluster_that_has_no_room_for_a_row_is_no_candidate()
  local long, short = "logits_logp_backward:bf16:n4096:v131072:fused", "logits_logp_backward:bf16:n4096:v65536:fused"
  local function clusters(problem)
    local seen = {}
    for _, line in ipairs(candidates(problem, 90, false, 100)) do
      local _, _, text = parts(line)
      local cluster = text:match("fused%.cluster=(%d)")
      if cluster then seen[cluster] = true end
    end
    return seen
  end
  lu.assertEquals(clusters(long), { ["2"] = true, ["8"] = true })
  lu.assertEquals(clusters(short), { ["1"] = true, ["4"] = true, ["8"] = true })
  support.assert_refused({ "a row has 131072 entries, a cluster room for 98304" }, fusedlogp.select(long, 90, "sm_90a", "fused.cluster=1"))
end

function TestTuning.test_what_is_no_tuning_is_refused()
  for text, reason in pairs {
    ["tile.bm"] = "wanted role.field=number", ["tile.bm=0"] = "numbers from 1 to 65536", ["tile.bm=064"] = "wanted role.field=number",
    ["tile.bm=65537"] = "numbers from 1 to 65536", ["tile.bm=64,tile.bm=64"] = "without repetition", ["tile.cluster=1,tile.bm=64"] = "alphabetical order",
    ["tile.bm=96"] = "bm = 96: with wg = 128 a multiple of it", ["tile.bm=96,tile.wg=64"] = "bm = 96: 64 or 128", ["tile.d=64"] = "no field d that is tuned", ["combine.bm=8"] = "no field bm that is tuned",
    ["rows.w=8"] = "no kernel has the role rows", ["tile.stages=9"] = "bytes of shared memory",
    ["tile.vec=8"] = "no field vec that is tuned",
  } do
    support.assert_refused({ reason }, fusedlogp.select(forward, 90, "sm_90a", text))
  end
end

-- C applies the tunings of chunks. Here the kernels stay the same, and the fields that decide on a row's bits enter the numeric identity.
function TestTuning.test_chunks_are_taken_and_named()
  local step, capability = "linear_cross_entropy:bf16:n1024:d512:v32768:gh_bf16:gw_bf16:saved_exp", 90
  local function identity(problem, text) return assert(fusedlogp.identity(problem, capability, "auto", text, support.read_template)) end
  local default, changed = identity(step, ""), identity(step, "chunks.columns=20,chunks.rows=4,chunks.saved=30")
  lu.assertEquals(changed.numerics, default.numerics .. ";chunks.columns=20;chunks.saved=30")
  lu.assertEquals(changed.templates, default.templates)
  lu.assertEquals(identity(step, "chunks.rows=4").numerics, default.numerics)
  lu.assertEquals(fusedlogp.select(step, 90, "auto", "chunks.borrowed=4").kernels, fusedlogp.select(step, 90, "auto", "").kernels)
  support.assert_refused({ "chunks have no field wide" }, fusedlogp.select(step, 90, "auto", "chunks.wide=4"))
  support.assert_refused({ "no kernel has the role chunks" }, fusedlogp.select(forward, 90, "sm_90a", "chunks.columns=4"))
  for i, line in ipairs(assert(fusedlogp.candidates(step, 90, "auto", "chunks.columns=20", {}, false, 3, support.read_template))) do
    local _, _, text = parts(line)
    lu.assertStrContains(text, "chunks.columns=20", false, i)
  end
end

-- C has the list of widths (runtime/operators/linear/chunk_tuning.c). Each is accepted here, for both operators that have chunks, and is part of the numeric
-- identity if C says that it decides on a row's bits.
function TestTuning.test_chunks_have_the_widths_of_c()
  local rows = assert(support.read_template("runtime/operators/linear/chunk_tuning.c")):match("width widths%[%] = (%b{})")
  local known = 0
  for name, decides in rows:gmatch('{ "(%l+)", offsetof%b(), [%u_]+, ([01]) }') do
    known = known + 1
    for _, operator in ipairs { "linear_logp_backward", "linear_cross_entropy" } do
      local problem, text = operator .. ":bf16:n1024:d512:v32768:gh_bf16:gw_bf16", ("chunks.%s=20"):format(name)
      local function numerics(of) return assert(fusedlogp.identity(problem, 90, "auto", of, support.read_template)).numerics end
      lu.assertEquals(numerics(text), numerics("") .. (decides == "1" and ";" .. text or ""), text)
    end
  end
  lu.assertEquals(known, select(2, rows:gsub('"', "")) // 2)
end

-- ---- the table of docs/operating.md ----

-- Problems that together have every kernel that is tuned: a field that is a candidate for none of them is never one.
local table_problems = {
  forward, "linear_logp:bf16:n64:d2048:v131072", "linear_logp:bf16:n4096:d2048:v131072:hs2052", "linear_logp:f32:n4096:d2048:v131072",
  "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16", "linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16:saved_exp",
  "logits_logp:bf16:n4096:v131072", "logits_logp:bf16:n8:v131072", "logits_logp_backward:bf16:n4096:v131072:fused",
  "logits_logp_backward:bf16:n4096:v2048:fused", "weighted_sum:bf16:n4096:d4096", "weighted_sum_backward:bf16:n4096:d4096:gx_bf16:gw_bf16",
}
local table_fields = { "bm", "wg", "bv", "stages", "cluster", "group", "s", "vec", "w", "team" }

-- offered[kernel][field]: "yes" if the field has candidates, "bits" if only with --numerics.
local function offered_at(capability)
  local offered = {}
  for _, problem in ipairs(table_problems) do
    local kernels = {}
    for _, kernel in ipairs(assert(fusedlogp.select(problem, capability, "auto", "", support.read_template)).kernels) do
      kernels[kernel.role] = variant.parse(kernel.variant).operator
    end
    for _, numerics in ipairs { true, false } do
      for _, line in ipairs(candidates(problem, capability, numerics, math.maxinteger)) do
        for _, item in ipairs(tuning.parse((select(3, parts(line))))) do
          local kernel = kernels[item.role]
          offered[kernel] = offered[kernel] or {}
          offered[kernel][item.field] = not numerics and "yes" or offered[kernel][item.field] or "bits"
        end
      end
    end
  end
  return offered
end

-- The table's rows as they must be, and the kernels that have no row.
local function table_of_candidates()
  local hopper, portable, rows, others = offered_at(90), offered_at(80), {}, {}
  local known = {}
  for _, field in ipairs(table_fields) do known[field] = true end
  for kernel in pairs(variant.operators) do
    local cells = {}
    for i, field in ipairs(table_fields) do
      local both = { (hopper[kernel] or {})[field] or "-", (portable[kernel] or {})[field] or "-" }
      cells[i] = both[1] == both[2] and both[1] or both[1] .. " / " .. both[2]
    end
    for _, fields in ipairs { hopper[kernel] or {}, portable[kernel] or {} } do
      for field in pairs(fields) do lu.assertTrue(known[field], "the table has no column " .. field) end
    end
    local list = (hopper[kernel] or portable[kernel]) and rows or others
    list[#list + 1] = list == rows and ("| `%s` | %s |"):format(kernel, table.concat(cells, " | ")) or kernel
  end
  table.sort(rows)
  return rows, others
end

-- The table says what the tuner tries. If this test fails, its message has the rows as they must be.
function TestTuning.test_the_table_of_the_documents_is_what_is_tried()
  local text = assert(support.read_template("docs/operating.md"))
  local section = assert(text:match("\n### What is tuned\n(.-)\n##"), "no section What is tuned")
  local head = "| kernel | `" .. table.concat(table_fields, "` | `") .. "` |"
  lu.assertStrContains(section, head)
  local said = {}
  for line in section:match(head:gsub("%p", "%%%0") .. "\n|[-|]+\n(.-)\n\n"):gmatch("[^\n]+") do said[#said + 1] = line end
  local rows, others = table_of_candidates()
  lu.assertEquals(table.concat(said, "\n"), table.concat(rows, "\n"))
  local contributing = assert(support.read_template("docs/contributing.md"):match("\n%*%*8%. Tuning%.%*%*.-\n\n"))
  for _, kernel in ipairs(others) do lu.assertStrContains(contributing, "`" .. kernel .. "`") end
  -- C has the fields of chunks; each is explained below the table.
  local widths = assert(support.read_template("runtime/operators/linear/chunk_tuning.c")):match("width widths%[%] = (%b{})")
  for name in widths:gmatch('{ "(%l+)"') do lu.assertStrContains(section, ("`chunks.%s`"):format(name)) end
end

-- The text at the table gives reasons why some values are no candidates.
function TestTuning.test_what_is_no_candidate_is_so_for_the_reason_that_the_documents_give()
  local function reason_of(text)
    local spec = assert(variant.parse(text))
    return assert(select(2, emit.check(spec)), text)
  end
  -- A row of a stage is as long as the swizzle on Hopper, and 64 bytes on the portable path.
  for text, bytes in pairs { ["linear_logp.bf16.d2048.bm128.bv256.s132.c2.p4.sm_90a"] = 128, ["linear_logp.bf16.d2048.bm128.bv128.s108.c1.p4.sm_80"] = 64,
                             ["linear_logp.f32.d2048.bm64.bv168.s132.c1.p3.sm_90a"] = 128, ["linear_logp.f32.d2048.bm64.bv128.s108.c1.p4.sm_80"] = 64 } do
    local spec = assert(variant.parse(text))
    local n = emit.kernel_of(spec).derive(spec)
    lu.assertEquals(n.block_inner * n.element_bytes, bytes, text)
  end
  lu.assertStrContains(reason_of("linear_logp.bf16.d2048.bm128.bv256.s108.c1.p4.sm_80"), "bv = 256")
  lu.assertStrContains(reason_of("linear_logp.bf16.d2048.bm128.bv128.s108.c2.p4.sm_80"), "c = 2")
  for _, line in ipairs(candidates("logits_logp_backward:bf16:n4096:v131072:fused", 90, false, 100)) do lu.assertNotStrContains(line, "fused.vec") end
end

function TestTuning.test_candidates_are_legal_and_keep_the_bits()
  for _, problem in ipairs(problems) do
    for _, capability in ipairs { 80, 90 } do
      local default = numerics_of(fusedlogp.select(problem, capability, "auto", "", support.read_template))
      for i, line in ipairs(candidates(problem, capability)) do
        local time, role, text = parts(line)
        lu.assertTrue(time > 0, line)
        lu.assertEquals(i == 1, text == "", line)
        lu.assertEquals(i == 1, role == "-", line)
        local found = assert(fusedlogp.select(problem, capability, "auto", text, support.read_template))
        lu.assertEquals(numerics_of(found), default, text)
        for _, item in ipairs(tuning.parse(text)) do lu.assertEquals(item.role, role) end
      end
    end
  end
end

function TestTuning.test_the_numeric_identity_moves_only_where_it_is_asked_for()
  local default, moved = numerics_of(fusedlogp.select(forward, 90, "auto", "")), 0
  for _, line in ipairs(candidates(forward, 90, true, 1000)) do
    local _, _, text = parts(line)
    if numerics_of(fusedlogp.select(forward, 90, "auto", text)) ~= default then moved = moved + 1 end
  end
  lu.assertTrue(moved > 0)
end

function TestTuning.test_there_are_at_most_so_many_of_a_role_and_none_twice()
  local of_role, seen = {}, {}
  for i, line in ipairs(candidates("linear_logp_backward:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16", 90, false, 5)) do
    local _, role, text = parts(line)
    lu.assertNil(seen[text])
    seen[text] = true
    if i > 1 then of_role[role] = (of_role[role] or 0) + 1 end
  end
  lu.assertEquals(of_role, { grad_logits = 5, hidden_product = 5, weight_product = 5 })
end

-- What begins with a tuning goes on from it: neither it nor what it results in is tried again, and what it does not name stays as selection has it.
function TestTuning.test_a_base_is_not_its_own_candidate()
  for problem, base in pairs {
    ["linear_logp:bf16:n4096:d2048:v131072"] = "tile.group=8",
    ["linear_cross_entropy:bf16:n2048:d4096:v128256:dv:gh_bf16:gw_bf16:sum:tokens"] = "weight_product.bv=192,weight_product.stages=4",
    ["linear_cross_entropy:bf16:n8192:d2048:v131072:gh_bf16:gw_bf16:saved_exp:sum:tokens"] = "save_exp_tile.cluster=2,save_exp_tile.group=8",
  } do
    local function kernels(text)
      local found, list = assert(fusedlogp.select(problem, 90, "auto", text, support.read_template)), {}
      for i, kernel in ipairs(found.kernels) do list[i] = kernel.variant .. " " .. kernel.group end
      return table.concat(list, "\n")
    end
    local seen, count = {}, 0
    for _, line in ipairs(assert(fusedlogp.candidates(problem, 90, "auto", base, {}, false, 1000, support.read_template))) do
      local _, _, text = parts(line)
      local launched = kernels(text)
      lu.assertNil(seen[launched], text)
      seen[launched], count = text, count + 1
    end
    lu.assertTrue(count > 20)
  end
end

-- One plan has one predicted time, whether it is the first candidate of a search or what a tuning makes of the default.
function TestTuning.test_a_plan_has_one_predicted_time()
  local problem, base = "linear_cross_entropy:bf16:n2048:d4096:v128256:dv:gh_bf16:gw_bf16:sum:tokens", "grad_logits.group=2"
  local first = parts(assert(fusedlogp.candidates(problem, 90, "auto", base, {}, false, 1, support.read_template))[1])
  for _, line in ipairs(candidates(problem, 90, false, 1000)) do
    local seconds, _, text = parts(line)
    if text == base then
      lu.assertAlmostEquals(seconds, first, 2)
      return
    end
  end
  lu.fail(base .. " is no candidate")
end

-- A step's workspace has room for the splits of selection's tiles.
function TestTuning.test_a_step_has_no_more_splits_than_its_workspace()
  local step, loss = "linear_cross_entropy:bf16:n4096:d4096:v%d:gh_bf16:gw_bf16:saved_exp:sum:tokens", "linear_cross_entropy:bf16:n4096:d4096:v%d"
  local function tiles_of(problem, role)
    local found = {}
    for _, line in ipairs(candidates(problem, 90, true, 10000)) do
      if line:find(role, 1, true) then found[(line:match(role .. "%.bv=(%d+)") or "-") .. " " .. (line:match(role .. "%.s=(%d+)") or "-")] = true end
    end
    return found
  end
  for problem, role in pairs { [step] = "save_exp_tile", [loss] = "tile" } do
    local large, small = tiles_of(problem:format(128256), role), tiles_of(problem:format(8448), role)
    for _, tile in ipairs { "64 -", "128 108", "256 66" } do lu.assertTrue(large[tile], problem .. " " .. tile) end
    for _, tile in ipairs { "64 264", "128 264", "256 198", "256 264" } do lu.assertNil(large[tile], problem .. " " .. tile) end
    lu.assertNil(small["64 -"]) -- 132 splits, where the widest selected tiles have 66
    lu.assertNil(small["64 108"])
    lu.assertTrue(small["128 66"])
  end
  lu.assertTrue(tiles_of(forward, "tile")["64 264"])
  support.assert_refused({ "bv = 192, s = 198: 272 splits" }, fusedlogp.select(step:format(128256), 90, "sm_90a", "save_exp_tile.s=198", support.read_template))
end

-- C counts them, too.
function TestTuning.test_the_tiles_of_steps_are_those_of_c()
  local source = assert(support.read_template("runtime/operators/linear/linear_budget.c"))
  local list, of_c = {}, source:match("flp_linear_budget_most_splits%(int64_t vocab%).-kernels%[%] = {(.-)};")
  for columns, s in of_c:gmatch("{ (%d+), (%d+) }") do list[#list + 1] = { tonumber(columns), tonumber(s) } end
  lu.assertEquals(list, emit.tiles_of_steps)
end

-- The model may be wrong about one tile relative to another by more than the difference that it predicts between them, so each must be tried.
function TestTuning.test_each_tile_has_a_candidate_before_any_has_two()
  local problem = "linear_cross_entropy:bf16:n8192:d4096:v128256:dv:gh_bf16:gw_bf16:sum:tokens"
  local function tile_of(text) return (text:gsub("[a-z_]+%.group=%d+,?", ""):gsub("[a-z_]+%.stages=%d+,?", ""):gsub(",$", "")) end
  local had, last, tiles = {}, {}, {}
  for i, line in ipairs(candidates(problem, 90, false, 12)) do
    local _, role, text = parts(line)
    if i > 1 then
      local tile = role .. ":" .. tile_of(text)
      had[tile] = (had[tile] or tile == role .. ":" and 1 or 0) + 1
      lu.assertTrue(had[tile] >= (last[role] or 0), text)
      last[role] = had[tile]
      tiles[text] = true
    end
  end
  lu.assertEquals(last, { tile = 7, grad_logits = 1, hidden_product = 2, weight_product = 2 })
  lu.assertTrue(tiles["weight_product.bv=192,weight_product.stages=4"], "in turns, as the whole vocabulary has it, with the groups that selection chose")
  lu.assertTrue(tiles["hidden_product.bv=256,hidden_product.stages=4,hidden_product.wg=64"])
end

function TestTuning.test_the_model_follows_the_device()
  local function default_time(facts)
    return (parts(fusedlogp.candidates(forward, 90, "auto", "", facts, false, 1, support.read_template)[1]))
  end
  lu.assertTrue(default_time { multiprocessors = 66 } > 1.8 * default_time { multiprocessors = 132 })
  lu.assertTrue(default_time { clock_hz = 1e9 } > 1.5 * default_time { clock_hz = 1.98e9 })
  lu.assertEquals(default_time {}, default_time { multiprocessors = 0, memory = 0 })
end

-- Its parts are further tiles: of few rows, whose tiles leave most multiprocessors idle, a product takes less time; of many, about as much.
function TestTuning.test_the_model_knows_the_parts_of_a_frozen_heads_product()
  local spec, facts = variant.parse("matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.parts.sm_90a"), model.known {}
  spec.role = "hidden_product"
  local function seconds(n, hint)
    return model.seconds(problem.parse(("linear_cross_entropy:bf16:n%d:d2048:v131072:gh_bf16:saved_exp:direct%s"):format(n, hint)), spec, nil, facts)
  end
  lu.assertTrue(seconds(256, ":parts4") < 0.5 * seconds(256, ""))
  lu.assertAlmostEquals(seconds(8192, ":parts4") / seconds(8192, ""), 1, 0.1)
end

function TestTuning.test_an_identity_says_what_a_record_must_agree_with()
  local one = assert(fusedlogp.identity(forward, 90, "auto", "", support.read_template))
  lu.assertEquals(one.arch, "sm_90a")
  lu.assertStrContains(one.numerics, "linear_logp.r3.wgmma")
  lu.assertStrContains(one.templates, "templates/sm90a/linear_logp.cuh:")
  lu.assertNotStrContains(one.templates, "//")
  local function reading(change)
    return fusedlogp.identity(forward, 90, "auto", "", function(path)
      local text = support.read_template(path)
      return path == "templates/sm90a/linear_logp.cuh" and change(text) or text
    end).templates
  end
  lu.assertEquals(reading(function(text) return "// another comment\n" .. text end), one.templates)
  lu.assertNotEquals(reading(function(text) return text .. "struct Another {};\n" end), one.templates)
  -- Tuned kernels have a numeric identity and templates of their own.
  local tuned = assert(fusedlogp.identity(forward, 90, "auto", "tile.bv=128", support.read_template))
  lu.assertStrContains(tuned.numerics, ".bv128.")
  lu.assertNotEquals(tuned.templates, one.templates)
  lu.assertNil(fusedlogp.identity(forward, 90, "auto", "tile.bm=96", support.read_template))
end

-- Parses the lines of fusedlogp.arithmetics to a list of { role, text, tries = { [problem + 1] = { text, ... } } }.
local function arithmetics(pattern, rows, capability, limit)
  local problems, list = {}, {}
  for i, n in ipairs(rows) do problems[i] = pattern:format(n) end
  local lines = assert(fusedlogp.arithmetics(table.concat(problems, "\n"), capability, "auto", {}, limit, support.read_template))
  for _, line in ipairs(lines) do
    local kind, word, text = line:match("^(%S+) (%S+) (%S+)$")
    if kind == "arithmetic" then
      list[#list + 1] = { role = word, text = text == "-" and "" or text, tries = {} }
    else
      local tries = list[#list].tries
      tries[word + 1] = tries[word + 1] or {}
      table.insert(tries[word + 1], text)
    end
  end
  return list, problems
end

function TestTuning.test_an_arithmetic_is_one_for_any_number_of_rows()
  for _, pattern in ipairs { "linear_logp:bf16:n%d:d2048:v131072", "linear_logp_backward:bf16:n%d:d512:v32768:gh_bf16:gw_bf16" } do
    for _, capability in ipairs { 80, 90 } do
      local list, problems = arithmetics(pattern, { 64, 128, 4096 }, capability, 8)
      lu.assertTrue(#list == 0 or list[1].text == "")
      for _, one in ipairs(list) do
        local decided
        for i, problem in ipairs(problems) do
          local identity = assert(fusedlogp.identity(problem, capability, "auto", one.text, support.read_template)).numerics
          decided = decided or identity
          lu.assertEquals(identity, decided, one.text)
          lu.assertTrue(#one.tries[i] >= 1 and #one.tries[i] <= 2, one.text)
          for _, text in ipairs(one.tries[i]) do
            lu.assertEquals(fusedlogp.identity(problem, capability, "auto", text, support.read_template).numerics, decided, text)
          end
        end
        local own = fusedlogp.identity(problems[1], capability, "auto", "", support.read_template).numerics
        lu.assertEquals(decided == own, one.text == "", one.text)
      end
    end
  end
end

function TestTuning.test_arithmetics_differ_and_are_no_more_than_so_many()
  local list, seen = arithmetics("linear_logp:bf16:n%d:d2048:v131072", { 64, 4096 }, 90, 8), {}
  lu.assertEquals(#list, 4)
  for _, one in ipairs(list) do
    lu.assertNil(seen[one.text])
    seen[one.text] = true
  end
  lu.assertTrue(#arithmetics("linear_logp:bf16:n%d:d2048:v131072", { 64, 4096 }, 90, 1000) > 8)
end

-- The team alone decides on a row's bits. For each team, the two tunings that are tried first differ in the width of loads.
function TestTuning.test_the_arithmetic_of_a_weighted_sum_is_its_team()
  local list = arithmetics("weighted_sum:bf16:n%d:d4096", { 64, 4096 }, 90, 8)
  lu.assertEquals(list[1], { role = "sum", text = "", tries = { { "sum.vec=8", "sum.vec=4" }, { "sum.vec=8", "sum.vec=4" } } })
  lu.assertEquals(list[2].text, "sum.team=256")
  lu.assertEquals(#list, 4)
  lu.assertEquals(arithmetics("weighted_sum_backward:bf16:n%d:d4096:gx_bf16", { 64, 4096 }, 90, 8), {}) -- none of its fields changes a row's bits
end

-- The roles and fields that a problem's candidates tune.
local function axes(problem, facts)
  local found = {}
  for _, line in ipairs(assert(fusedlogp.candidates(problem, 90, "auto", "", facts or {}, false, 1000, support.read_template))) do
    local _, _, text = parts(line)
    for _, item in ipairs(tuning.parse(text)) do found[item.role .. "." .. item.field] = true end
  end
  local names = {}
  for name in pairs(found) do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, " ")
end

function TestTuning.test_kernels_that_read_once_have_widths_and_blocks()
  lu.assertEquals(axes("logits_logp:bf16:n4096:v131072"), "rows.vec rows.w")
  lu.assertEquals(axes("logits_logp:bf16:n8:v131072"), "few_rows.cluster few_rows.vec few_rows.w rows.vec rows.w")
  lu.assertEquals(axes("logits_logp:bf16:n200:v131072"), "rows.vec rows.w")
  lu.assertEquals(axes("logits_logp:bf16:n200:v131072", { multiprocessors = 200 }), axes("logits_logp:bf16:n8:v131072"))
  lu.assertEquals(axes("logits_logp_backward:bf16:n4096:v131072:fused"), "fused.cluster fused.w gradient.vec gradient.w")
  lu.assertEquals(axes("weighted_sum:bf16:n4096:d4096"), "sum.vec")
  lu.assertEquals(axes("weighted_sum_backward:bf16:n4096:d4096:gx_bf16:gw_bf16"), "outer.vec tile.vec")
end

-- With few rows a call launches few_rows in place of rows, and only one of them counts.
function TestTuning.test_a_problem_takes_the_time_of_one_read()
  local function time_of(problem, capability)
    return (parts(fusedlogp.candidates(problem, capability, "auto", "", {}, false, 1, support.read_template)[1]))
  end
  lu.assertTrue(time_of("logits_logp:bf16:n8:v131072", 90) < 1.1 * time_of("logits_logp:bf16:n8:v131072", 80)) -- sm_80 has no few_rows
end

-- Addresses and row strides limit the width of loads.
function TestTuning.test_loads_are_no_wider_than_addresses_allow()
  support.assert_refused({ "sum.vec=4", "the addresses allow loads of 2 bytes" }, fusedlogp.select("weighted_sum:bf16:n64:d4097", 90, "auto", "sum.vec=4"))
  support.assert_refused({ "rows.vec=16", "the addresses allow loads of 2 bytes" },
                         fusedlogp.select("logits_logp:bf16:n64:v50257", 90, "auto", "rows.vec=16"))
  lu.assertEquals(axes("logits_logp:bf16:n4096:v50257"), "rows.w")
  lu.assertEquals(fusedlogp.select("weighted_sum:bf16:n64:d4096", 90, "auto", "sum.vec=16").kernels,
                  fusedlogp.select("weighted_sum:bf16:n64:d4096", 90, "auto", "").kernels)
  -- If the base has narrow loads, selection's own width is a candidate.
  local wide
  for _, line in ipairs(assert(fusedlogp.candidates("weighted_sum:bf16:n64:d4096", 90, "auto", "sum.vec=4", {}, false, 6, support.read_template))) do
    local _, role, text = parts(line)
    wide = wide or role == "sum" and text == ""
  end
  lu.assertTrue(wide)
end

function TestTuning.test_candidates_of_a_base_keep_its_bits()
  local problem, base = "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16", "hidden_product.bv=128"
  local wanted = fusedlogp.identity(problem, 90, "auto", base, support.read_template).numerics
  for i, line in ipairs(assert(fusedlogp.candidates(problem, 90, "auto", base, {}, false, 6, support.read_template))) do
    local _, _, text = parts(line)
    lu.assertEquals(i == 1, text == base, line)
    lu.assertEquals(fusedlogp.identity(problem, 90, "auto", text, support.read_template).numerics, wanted, line)
  end
  support.assert_refused({ "bm = 96" }, fusedlogp.candidates(forward, 90, "auto", "tile.bm=96", {}, false, 6, support.read_template))
end

support.run()
