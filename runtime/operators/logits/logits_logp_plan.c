/* logits_logp as an operator: what its plans hold, need and say. */
#include "operators/logits/logits_logp_plan.h"

#include <stddef.h>

#include "base/status.h"
#include "operators/logits/logits_logp_cpu.h"
#include "operators/logits/logits_logp_problem.h"

flp_logits_logp_pass flp_logits_logp_plan_pass(const flp_logits_logp_plan *plan, int64_t rows)
{
    return flp_logits_logp_forward_choose(&plan->forward, plan->common.device.facts.multiprocessors, plan->problem.vocab, rows);
}

static flp_status set_up(flp_plan *common)
{
    flp_logits_logp_plan *plan = (flp_logits_logp_plan *)(void *)common;
    flp_status status = flp_plan_check_kernels(common, FLP_LOGITS_LOGP_FORWARD_ROLES, FLP_LOGITS_LOGP_FORWARD_OPTIONAL_ROLES);

    return status == FLP_OK ? flp_logits_logp_forward_take(common, &plan->forward) : status;
}

/* Rows that no two blocks share need none. */
static void lay_out(const flp_plan *common, int64_t rows, flp_workspace *workspace)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    const flp_logits_logp_shape shape = rows > 0 ? flp_logits_logp_plan_pass(plan, rows).shape : (flp_logits_logp_shape){ .parts = 1 };

    flp_logits_logp_lay_out(shape.parts > 1 ? rows : 0, shape.segments, plan->problem.argmax, plan->problem.entropy, 0, workspace);
}

static int64_t most_rows(const flp_plan *common, int64_t rows)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);

    return flp_logits_logp_forward_cut_rows(&plan->forward, common->device.facts.multiprocessors, plan->problem.vocab, rows);
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);

    if (flp_plan_on_gpu(common))
        flp_text_append(text, "%s", plan->forward.rows->manifest.numerics);
    else
        flp_text_append(text, "%s", flp_logits_logp_cpu_numerics());
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    const flp_logits_logp_pass pass = flp_logits_logp_plan_pass(plan, plan->problem.rows ? plan->problem.rows : 1);

    flp_logits_logp_forward_describe(&plan->forward, text);
    flp_text_append(text, "launch: %s, %u blocks; %d segments a row of %d logits, in %d parts\n", pass.kernel->manifest.variant, pass.shape.blocks,
                    pass.shape.segments, pass.kernel->manifest.block_vocab, pass.shape.parts);
}

const flp_operator flp_logits_logp_operator = {
    .name = "logits_logp",
    .problem_bytes = sizeof(flp_logits_logp_problem),
    .problem_struct = &flp_sized_logits_logp_problem,
    .rows_at = offsetof(flp_logits_logp_problem, rows),
    .pointer_alignment_at = offsetof(flp_logits_logp_problem, pointer_alignment),
    .backend_at = offsetof(flp_logits_logp_problem, backend),
    .fields = flp_logits_logp_fields,
    .plan_bytes = sizeof(flp_logits_logp_plan),
    .problem_at = offsetof(flp_logits_logp_plan, problem),
    .set_up = set_up,
    .lay_out = lay_out,
    .most_rows = most_rows,
    .describe = describe,
    .write_numerics = write_numerics,
};
_Static_assert(sizeof(flp_logits_logp_problem) <= FLP_PROBLEM_BYTES, "FLP_PROBLEM_BYTES is too small");
