-- Which rows of linear_logp's backward count, and with what factors: one block.
local budget = require "gen.budget"

local kernel = { dependent_launch = true }

kernel.templates = {
  "types", "params/linear_logp_backward", "target", "simt", "tally", "logit_bounds", "row_offset", "dependent_launch", "linear_logp_backward_rows",
}
kernel.parameters = { { "BackwardRowsParams", "params" } }

function kernel.derive() return budget.of_threads(1024, 1024 // 32 * 8) end

function kernel.numerics() return "linear_logp_backward_rows.r3" end

function kernel.about(_, n)
  return {
    computes = "which rows are valid and where each stands among these; of each the factors that make its logits derivatives",
    grid = "one block that places the rows; any number that compute factors", threads = "rows in turn",
    shared = { { n.shared_bytes, "a number of each warp: sums of what comes before" } },
  }
end

return kernel
