/* logits_logp_backward as an operator: its plans' kernels, workspace, description and numerics. */

#include <stddef.h>

#include "base/status.h"
#include "core/plan.h"
#include "operators/logits/logits_logp_plan.h"

flp_logits_logp_shape flp_logits_logp_backward_plan_fused(const flp_logits_logp_backward_plan *plan, int64_t rows)
{
    if (!plan->fused)
        return (flp_logits_logp_shape){ .blocks = 0 };
    return flp_logits_logp_shape_fused(&plan->fused->manifest, plan->fused->clusters, plan->problem.vocab, rows);
}

static flp_status set_up(flp_plan *common)
{
    flp_logits_logp_backward_plan *plan = (flp_logits_logp_backward_plan *)(void *)common;
    flp_status status = plan->problem.fused ? flp_plan_check_kernels(common, FLP_ROLE_SET(GRADIENT) | FLP_ROLE_SET(FUSED) | FLP_LOGITS_LOGP_FORWARD_ROLES,
                                                                     FLP_LOGITS_LOGP_FORWARD_OPTIONAL_ROLES)
                                            : flp_plan_check_kernels(common, FLP_ROLE_SET(GRADIENT), 0);

    if (status != FLP_OK)
        return status;
    plan->gradient = common->kernels[FLP_ROLE_GRADIENT];
    plan->fused = common->kernels[FLP_ROLE_FUSED];
    status = flp_logits_logp_forward_check_manifest(&plan->gradient->manifest);
    if (status != FLP_OK || !plan->fused)
        return status;
    status = flp_logits_logp_forward_check_manifest(&plan->fused->manifest);
    return status == FLP_OK ? flp_logits_logp_forward_take(common, &plan->forward) : status;
}

/* Only rows that the fused kernel does not process need a workspace. */
static void lay_out(const flp_plan *common, int64_t rows, flp_workspace *workspace)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);
    const flp_logits_logp_shape fused = flp_logits_logp_backward_plan_fused(plan, rows);

    flp_logits_logp_lay_out(plan->problem.fused && fused.blocks == 0 ? rows : 0, fused.segments, 0, plan->problem.entropy, 1, workspace);
}

static int64_t most_rows(const flp_plan *common, int64_t rows)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);
    int64_t low = 0, high = rows;

    if (!plan->problem.fused)
        return 0;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (flp_logits_logp_backward_plan_fused(plan, middle).blocks == 0)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Either the fused kernel is launched, or those that do its work in steps. */
static int launches(const flp_plan *common, flp_role role, int64_t rows)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);
    const int64_t some = rows > 0 ? rows : 1;

    if (!plan->fused)
        return 1;
    if (flp_logits_logp_backward_plan_fused(plan, some).blocks > 0)
        return role == FLP_ROLE_FUSED;
    if (role != FLP_ROLE_ROWS && role != FLP_ROLE_FEW_ROWS)
        return role != FLP_ROLE_FUSED;
    return flp_logits_logp_forward_choose(&plan->forward, common->device.facts.multiprocessors, plan->problem.vocab, some).kernel == common->kernels[role];
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);

    if (!flp_plan_on_gpu(common))
        flp_text_append(text, "%s", flp_logits_logp_cpu_numerics());
    else if (plan->fused)
        flp_text_append(text, "%s;%s", plan->forward.rows->manifest.numerics, plan->gradient->manifest.numerics);
    else
        flp_text_append(text, "%s", plan->gradient->manifest.numerics);
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);
    const flp_logits_logp_shape shape = flp_logits_logp_backward_plan_fused(plan, plan->problem.rows ? plan->problem.rows : 1);

    if (plan->fused) {
        flp_describe_kernel(text, "fused", &plan->fused->manifest);
        flp_text_append(text, "fused cluster: %d\n", plan->fused->manifest.cluster);
        flp_text_append(text, "fused blocks: %u\n", shape.blocks);
        flp_logits_logp_forward_describe(&plan->forward, text);
    }
    flp_describe_kernel(text, "gradient", &plan->gradient->manifest);
}

const flp_operator flp_logits_logp_backward_operator = {
    FLP_OPERATOR_OF(logits_logp_backward, ),
    .fields = flp_logits_logp_backward_fields,
    .launches = launches,
    .set_up = set_up,
    .lay_out = lay_out,
    .most_rows = most_rows,
    .describe = describe,
    .write_numerics = write_numerics,
};
