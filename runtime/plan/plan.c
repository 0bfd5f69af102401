/* Creates plans: path, kernels, split, and what is said of them. */
#include "plan/plan.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "cpu/linear_logp_cpu.h"
#include "plan/device_memory.h"
#include "plan/problem.h"
#include "plan/target_errors.h"
#include "plan/workspace.h"

int flp_plan_on_gpu(const flp_plan *plan)
{
    return plan->choice.path != FLP_BACKEND_CPU;
}

flp_status flp_plan_check_context(const flp_plan *plan, unsigned long long cuda_context)
{
    if (cuda_context == plan->device.context_id)
        return FLP_OK;
    return flp_status_fail(FLP_WRONG_CONTEXT, "the current CUDA context is number %llu, the plan belongs to number %llu",
                           cuda_context, plan->device.context_id);
}

flp_launch flp_plan_launch(const flp_plan *plan, int64_t rows)
{
    return flp_launch_shape(&plan->tile->manifest, &plan->combine->manifest, plan->device.facts.multiprocessors, plan->split.splits,
                            plan->problem.hidden * flp_problem_element_bytes(&plan->problem), rows);
}

/* What launches and the split divide by; a kernel in a cache says it of itself. */
static flp_status check_manifests(const flp_manifest *tile, const flp_manifest *combine)
{
    if (tile->threads < 1 || tile->block_rows < 1 || tile->block_vocab < 1 || tile->cluster < 1 || tile->round_splits < 4)
        return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, block_rows %d, block_vocab %d, cluster %d, round_splits %d; "
                               "wanted at least 1, 1, 1, 1, 4", tile->variant, tile->threads, tile->block_rows, tile->block_vocab,
                               tile->cluster, tile->round_splits);
    if (combine->threads < 1 || combine->block_rows < 1)
        return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, block_rows %d; wanted at least 1, 1", combine->variant,
                               combine->threads, combine->block_rows);
    return FLP_OK;
}

static flp_status get_kernels(flp_plan *plan)
{
    const flp_selection *selection = &plan->choice.selection;
    const flp_kernel *kernels[FLP_SELECTION_KERNELS];
    flp_status status = flp_kernel_store_get(plan->context->store, &plan->device, selection->count, selection->variant, kernels);

    if (status != FLP_OK)
        return status;
    plan->tile = kernels[0];
    plan->combine = kernels[1];
    return check_manifests(&plan->tile->manifest, &plan->combine->manifest);
}

/* Both kernels' identities and the split, which the manifest's round_splits and V decide. */
static char *write_numerics(const flp_plan *plan)
{
    const flp_split *split = &plan->split;
    flp_text text = { 0 };

    if (!flp_plan_on_gpu(plan))
        return flp_text_duplicate(flp_linear_logp_cpu_numerics());
    flp_text_append(&text, "%s;split.t%d.s%d.b%dx%d;%s", plan->tile->manifest.numerics, split->tiles, split->splits, split->big,
                    split->big_tiles, plan->combine->manifest.numerics);
    if (text.failed)
        flp_text_free(&text);
    return text.data;
}

static flp_status set_up_gpu(flp_plan *plan)
{
    flp_status status = get_kernels(plan);

    if (status != FLP_OK)
        return status;
    plan->split = flp_split_compute(plan->problem.vocab, plan->tile->manifest.block_vocab, plan->tile->manifest.round_splits);
    return flp_target_errors_create(&plan->target_errors);
}

static flp_status set_up(const flp_linear_logp_problem *problem, flp_plan *plan)
{
    char text[FLP_PROBLEM_TEXT_BYTES];
    flp_status status = flp_problem_normalize(problem, &plan->problem);

    if (status == FLP_OK)
        status = flp_problem_format(&plan->problem, text, sizeof(text));
    if (status == FLP_OK)
        status = flp_choose_path(plan->context, &plan->problem, text, &plan->device, &plan->choice);
    if (status == FLP_OK && flp_plan_on_gpu(plan))
        status = set_up_gpu(plan);
    if (status != FLP_OK)
        return status;
    plan->numerics = write_numerics(plan);
    plan->description = plan->numerics ? flp_plan_write_description(plan, text) : NULL;
    if (!plan->description)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan's description");
    flp_log_info("plan %s: %s (%s)", text, flp_choose_name(plan->choice.path), plan->choice.reason);
    return FLP_OK;
}

flp_status flp_plan_create(flp_context *context, const flp_linear_logp_problem *problem, flp_plan **plan)
{
    flp_status status;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a pointer to flp_plan *");
    *plan = NULL;
    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    *plan = calloc(1, sizeof(**plan));
    if (!*plan)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan");
    (*plan)->context = context;
    pthread_mutex_init(&(*plan)->bad_mutex, NULL);
    status = set_up(problem, *plan);
    if (status == FLP_OK) {
        atomic_fetch_add(&context->plans, 1);
        return FLP_OK;
    }
    flp_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

void flp_plan_destroy(flp_plan *plan)
{
    if (!plan)
        return;
    flp_device_memory_free(&plan->device, plan->target_errors);
    pthread_mutex_destroy(&plan->bad_mutex);
    free(plan->numerics);
    free(plan->description);
    free(plan);
}

int64_t flp_plan_workspace_bytes(const flp_plan *plan, int64_t rows)
{
    if (!plan || rows < 0 || rows > plan->problem.rows)
        return -1;
    if (!flp_plan_on_gpu(plan))
        return 0;
    return flp_workspace_lay_out(rows, plan->split.splits, plan->problem.argmax).bytes;
}

const char *flp_plan_numerics(const flp_plan *plan)
{
    return plan->numerics;
}

const char *flp_plan_describe(const flp_plan *plan)
{
    return plan->description;
}
