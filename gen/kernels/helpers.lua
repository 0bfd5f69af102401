-- The small kernels beside the tile kernels, for any GPU. Each is a row of a table with these columns:
--   name              of the operator in the variant's name, and of the kernel's own template
--   params, struct    the header, or list of headers, with the kernel's parameters, and their type
--   templates         those between the parameters and the kernel's own template
--   threads           of a block
--   shared            the parts of shared memory (gen/banner.lua)
--   revision, more    of the arithmetic: a number, and text that follows it in the numeric identity
--   waits             true: the kernel itself waits for the launch before it (kernel.dependent_launch)
--   check, config     functions of a kernel's module
--   computes          what the banner says of the result
--   grid, each        what the banner says of the blocks and of a thread
-- threads, computes and more are functions of the spec where they depend on it.
local budget = require "gen.budget"
local cxx = require "gen.cxx"
local tile_config = require "gen.kernels.tile_config"

local backward = "params/linear_logp_backward"
local vectors = { "simt", "convert", "streaming", "vector", "dependent_launch" }

-- The combine's templates, which the kernels that merge shards use, too.
local merging = { "target", "simt", "tally", "logit_bounds", "row_offset", "dependent_launch", "linear_logp_combine" }

local function row_threads(spec) return spec.bm * 32 end

local function check_rows(spec)
  if spec.bm > 32 then return nil, ("bm = %d: rows of a block, one warp each, at most 32"):format(spec.bm) end
  return true
end

local function outputs(spec)
  return {
    { "bool", "wants_argmax", spec.argmax or false }, { "bool", "wants_entropy", spec.entropy or false },
    { "bool", "wants_logit_sum", spec.logit_sum or false },
  }
end

local rows = {
  -- These merge the splits of the vocabulary: the first gives a row's results, the second the statistics of a row for a shard of the vocabulary.
  { name = "linear_logp_combine",
    params = "params/linear_logp", struct = "LinearLogpCombineParams", templates = { table.unpack(merging, 1, #merging - 1) }, threads = row_threads,
    revision = 2, waits = true, check = check_rows, config = outputs,
    computes = "logp[row] = -log1p(S 2^k / 2^z2), lse = z[target] - logp and what else is asked, from the splits' sums S [N, splits] without the target",
    grid = "ceil(N / block_rows) blocks", each = "one warp a row; lane l adds splits l, l + 32, ..., then the lanes merge pairwise",
  },
  { name = "linear_logp_partials",
    params = { "params/linear_logp", "params/linear_logp_shard" }, struct = "LinearPartialsParams", templates = merging, threads = row_threads,
    revision = 1, waits = true, check = check_rows, config = outputs,
    computes = "of each row the offset k, S = sum_v 2^(z2[v] - k) without the target, the target's logit and what else is asked, from the splits' [N, splits]",
    grid = "ceil(N / block_rows) blocks", each = "one warp a row; lane l adds splits l, l + 32, ..., then the lanes merge pairwise",
  },

  -- The shards of a vocabulary.
  { name = "linear_logp_shard_targets",
    params = "params/linear_logp_shard", struct = "ShardTargetsParams", templates = { "target" }, threads = 256, revision = 1,
    computes = "entry[row] = target[row] - the shard's first, or why the target has none there", grid = "ceil(N / threads) blocks", each = "a row each",
  },
  { name = "linear_logp_merge",
    params = { "params/linear_logp", "params/linear_logp_shard" }, struct = "LinearMergeParams", templates = merging, threads = 256, revision = 1,
    waits = true, computes = "logp, lse, entropy and argmax of each row from what the shards have left of it, [ranks, N]",
    grid = "ceil(N / threads) blocks", each = "a row each, the shards in their order",
  },
  { name = "linear_logp_merge_sums", -- what else linear_cross_entropy takes from the shards
    params = "params/linear_logp_merge_sums", struct = "LinearMergeSumsParams", templates = { "target", "simt", "dependent_launch" }, threads = 256,
    revision = 1, waits = true,
    computes = "the sum of each row's logits from what the shards have left of it, [ranks, N]; lse and entropy 0 of rows that do not count",
    grid = "ceil(N / threads) blocks", each = "a row each, the shards in their order",
  },
  { name = "linear_logp_backward_other_shards",
    params = "params/linear_logp_shard", struct = "OtherShardsParams", templates = {}, threads = 256, revision = 1,
    computes = "targets of other shards become entry 0 with a derivative of 0", grid = "any number of blocks", each = "a row each",
  },

  -- The backward.
  { name = "linear_logp_backward_rows",
    params = backward, struct = "BackwardRowsParams", threads = 1024, revision = 3, waits = true,
    templates = { "target", "simt", "class_weights", "tally", "logit_bounds", "row_offset", "dependent_launch" },
    shared = { { 1024 // 32 * 8, "a number of each warp: sums of what comes before" } },
    -- dtype: of the derivatives, if these are scaled.
    check = function(spec)
      if spec.dtype and spec.dtype ~= "f16" then return nil, ("dtype = %s: derivatives of fp16 alone are scaled"):format(spec.dtype) end
      return true
    end,
    config = function(spec) return { { "bool", "scales", spec.dtype == "f16" } } end,
    computes = "which rows are valid and where each stands among these; of each the factors that make its logits derivatives",
    grid = "one block that places the rows; any number that compute factors", each = "rows in turn",
  },
  { name = "linear_logp_backward_gather",
    params = backward, struct = "BackwardGatherParams", templates = tile_config.join(vectors, { "late_wait" }), threads = 256, revision = 1, waits = true,
    config = function(spec) return { { "using", "element", cxx.types[spec.dtype] } } end,
    computes = "packed[i, D] = factor[i] hidden[row[i], D], zeros behind the last valid row; and zeroed sums", grid = "any number of blocks",
    each = "vectors of 16 bytes in turn",
  },
  { name = "linear_logp_backward_target_order",
    params = backward, struct = "TargetOrderParams", templates = { "simt", "dependent_launch" }, threads = 256, revision = 1, waits = true,
    computes = "the valid rows in the order of their targets, those of one target in their own", grid = "a block for each 8 rows",
    each = "counts for the block's rows those that come before, among every 256th row", shared = { { 256 // 32 * 8 * 4, "what each warp has counted" } },
  },
  { name = "linear_logp_backward_filter",
    params = backward, struct = "BackwardFilterParams", templates = { "simt", "tally", "dependent_launch" }, threads = 1024, revision = 1, waits = true,
    computes = "how many blocks of a chunk's derivatives the gradient filter kept, of how many; clears their bits", grid = "one block",
    each = "words of bits in turn",
  },
  { name = "linear_logp_backward_bias",
    params = backward, struct = "BackwardBiasParams", templates = { "simt", "convert", "dependent_launch" }, threads = 256, revision = 1, waits = true,
    config = function(spec)
      return { { "using", "element", cxx.types[spec.dtype] }, { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false } }
    end,
    computes = function(spec)
      return ("grad_bias[v] %s= the sum over the rows of their derivatives by the logits, and by those of the targets"):format(spec.adds and "+" or "")
    end,
    grid = "a block for each 32 columns", each = "each warp every 8th row of these columns; then the warps' sums in their order",
    shared = { { 256 * 4, "part: the warps' sums" } },
  },
  { name = "linear_logp_backward_finish",
    params = backward, struct = "BackwardFinishParams", templates = tile_config.join(vectors, { "late_wait" }), threads = 256, revision = 1, waits = true,
    -- dtype: of the sums, fp32 if it is left out; weight: the weight's dtype, if the sums lack the targets' contributions; parts: they are those of a product
    -- in parts, and the rows stay packed.
    check = function(spec)
      if spec.parts and (spec.dtype or spec.adds) then return nil, "parts: sums in fp32 that overwrite out" end
      return true
    end,
    config = function(spec)
      return {
        { "using", "sum_element", cxx.types[spec.dtype or "f32"] }, { "using", "out_element", cxx.types[spec.out] }, { "bool", "adds", spec.adds or false },
        { "bool", "in_parts", spec.parts or false },
        { "bool", "adds_targets", spec.weight ~= nil }, { "using", "weight_element", cxx.types[spec.weight or "f32"] },
        { "bool", "weight_is_hidden_vocab", spec.dv or false },
      }
    end,
    computes = function(spec)
      local target = spec.weight and ", with the target's derivative . its row of the weight" or ""
      if spec.parts then return ("out[packed row, D] = the parts of a product, added in their order, rounded once%s"):format(target) end
      return ("grad_hidden[row, D] %s= the sums of its place, rounded once%s; 0 for rows that are not valid"):format(spec.adds and "+" or "", target)
    end,
    grid = "any number of blocks", each = "vectors of 16 bytes in turn",
  },

  { name = "scale",
    params = "params/scale", struct = "ScaleParams", templates = { "simt", "convert", "streaming", "vector" }, threads = 256, revision = 1,
    more = function(spec) return "." .. spec.dtype end,
    config = function(spec) return { { "using", "element", cxx.types[spec.dtype] }, { "int", "unroll", 8 } } end,
    computes = "x[row, D] *= factor[0], rounded once; nothing where the factor is 1", grid = "a block for each part of 32 KiB of a row",
    each = "eight vectors of 16 bytes",
  },
  { name = "weighted_sum_combine",
    params = "params/weighted_sum", struct = "WeightedSumCombineParams", templates = { "simt", "convert", "dependent_launch" }, threads = 512,
    shared = { { 2048, "the warps' sums" } }, revision = 1, more = function(spec) return ".gw_" .. spec.gw end, waits = true,
    config = function(spec) return { { "using", "weight_gradient_element", cxx.types[spec.gw] } } end,
    computes = "grad_w[d] = the sum of the tiles' parts [tiles, D]", grid = "a block for each 32 columns",
    each = "warp i adds tiles i, i + 16, ..., then the warps' sums in their order",
  },
}

local function of(value, spec)
  if type(value) == "function" then return value(spec) end
  return value
end

local helpers = {}

for _, row in ipairs(rows) do
  local params = type(row.params) == "table" and row.params or { row.params }
  helpers[row.name] = {
    dependent_launch = row.waits, templates = tile_config.join({ "types" }, params, row.templates, { row.name }), parameters = { { row.struct, "params" } },
    check = row.check, config = row.config,
    derive = function(spec) return budget.of_threads(of(row.threads, spec), row.shared and row.shared[1][1] or 0) end,
    numerics = function(spec) return ("%s.r%d%s"):format(row.name, row.revision, of(row.more, spec) or "") end,
    about = function(spec) return { computes = of(row.computes, spec), grid = row.grid, threads = row.each, shared = row.shared } end,
  }
end

return helpers
