/* logits_logp as an operator: what its plans hold, need and say. */
#include "plan/logits_logp_plan.h"

#include <stddef.h>

#include "base/status.h"
#include "cpu/logits_logp_cpu.h"
#include "plan/logits_logp_problem.h"
#include "plan/prepare.h"

flp_logits_logp_shape flp_logits_logp_plan_shape(const flp_logits_logp_plan *plan, int64_t rows)
{
    return flp_logits_logp_shape_forward(&plan->rows->manifest, plan->common.device.facts.multiprocessors, plan->problem.vocab, rows);
}

flp_status flp_logits_logp_plan_check_manifest(const flp_manifest *manifest)
{
    if (manifest->threads >= 32 && manifest->block_vocab >= 1 && manifest->cluster >= 1)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, block_vocab %d, cluster %d; wanted at least 32, 1, 1",
                           manifest->variant, manifest->threads, manifest->block_vocab, manifest->cluster);
}

static flp_status set_up(flp_plan *common)
{
    flp_logits_logp_plan *plan = (flp_logits_logp_plan *)(void *)common;
    flp_status status = flp_plan_check_kernels(common, 2, "one for the rows and a combine");

    if (status != FLP_OK)
        return status;
    plan->rows = common->kernels[0];
    plan->combine = common->kernels[1];
    status = flp_logits_logp_plan_check_manifest(&plan->rows->manifest);
    return status == FLP_OK ? flp_logits_logp_plan_check_manifest(&plan->combine->manifest) : status;
}

/* Fewer rows may be cut into parts where more are not: the most that any number up to `rows` takes. */
static int64_t workspace_bytes(const flp_plan *common, int64_t rows)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    int64_t low = 0, high = rows;

    /* Rows are cut while they are few: the last number for which they are. */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (flp_logits_logp_plan_shape(plan, middle).parts > 1)
            low = middle;
        else
            high = middle - 1;
    }
    return low == 0 ? 0 : flp_logits_logp_scratch_lay_out(low, flp_logits_logp_plan_shape(plan, low).segments, plan->problem.argmax,
                                                          plan->problem.entropy, 0).bytes;
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);

    if (flp_plan_on_gpu(common))
        flp_text_append(text, "%s", plan->rows->manifest.numerics);
    else
        flp_text_append(text, "%s", flp_logits_logp_cpu_numerics());
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    const flp_logits_logp_shape shape = flp_logits_logp_plan_shape(plan, plan->problem.rows ? plan->problem.rows : 1);

    flp_plan_describe_kernel(text, "rows", &plan->rows->manifest);
    flp_text_append(text, "rows blocks: %u\n", shape.blocks);
    flp_text_append(text, "rows segments: %d of %d logits, %d warps a row, in %d parts\n", shape.segments,
                    plan->rows->manifest.block_vocab, 1 << shape.team_log2, shape.parts);
    flp_plan_describe_kernel(text, "combine", &plan->combine->manifest);
}

const flp_operator flp_logits_logp_operator = {
    .name = "logits_logp",
    .problem_bytes = sizeof(flp_logits_logp_problem),
    .rows_at = offsetof(flp_logits_logp_problem, rows),
    .pointer_alignment_at = offsetof(flp_logits_logp_problem, pointer_alignment),
    .backend_at = offsetof(flp_logits_logp_problem, backend),
    .syntax = &flp_logits_logp_problem_syntax,
    .normalize = flp_logits_logp_problem_normalize,
    .pack = flp_logits_logp_problem_pack,
    .plan_bytes = sizeof(flp_logits_logp_plan),
    .problem_at = offsetof(flp_logits_logp_plan, problem),
    .set_up = set_up,
    .workspace_bytes = workspace_bytes,
    .describe = describe,
    .write_numerics = write_numerics,
};
_Static_assert(sizeof(flp_logits_logp_problem) <= FLP_PROBLEM_BYTES, "FLP_PROBLEM_BYTES is too small");

flp_status flp_logits_logp_plan_create(flp_context *context, const flp_logits_logp_problem *problem, flp_plan **plan)
{
    return flp_plan_make(context, &flp_logits_logp_operator, problem, plan);
}

flp_status flp_logits_logp_prepare(flp_context *context, const flp_logits_logp_problem *problem, void *stream)
{
    return flp_prepare_problem(context, &flp_logits_logp_operator, problem, stream);
}
