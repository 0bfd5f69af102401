/* Creates plans of any operator: path, kernels, memory, and what is said of them. */
#include "core/create.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "core/describe.h"
#include "core/device_memory.h"
#include "core/plan.h"

static flp_status set_up_gpu(flp_plan *plan)
{
    const flp_selection *selection = &plan->choice.selection;
    const flp_kernel *kernels[FLP_ROLES];
    flp_status status = flp_kernel_store_get(plan->context->store, &plan->device, selection->count, selection->variant, kernels);

    for (int i = 0; status == FLP_OK && i < selection->count; i++)
        plan->kernels[selection->role[i]] = kernels[i];
    if (status == FLP_OK)
        status = flp_tallies_create(&plan->tallies);
    plan->target_errors = status == FLP_OK ? flp_tally_at(plan, FLP_TALLY_TARGETS) : 0;
    return status == FLP_OK ? plan->op->set_up(plan) : status;
}

static char *write_numerics(const flp_plan *plan)
{
    flp_text text = { 0 };

    plan->op->write_numerics(plan, &text);
    if (text.failed)
        flp_text_free(&text);
    return text.data;
}

static flp_status choose_path(flp_plan *plan, const char *text)
{
    const flp_operator *op = plan->op;
    char with_hint[FLP_PROBLEM_TEXT_BYTES + 32];

    snprintf(with_hint, sizeof(with_hint), "%s%s", text, op->hint ? op->hint(plan) : "");
    return flp_choose_path(plan->context, flp_operator_backend(op, flp_plan_problem(plan)), op->stays_on_gpu, with_hint, &plan->device, &plan->choice);
}

static flp_status set_up(const void *problem, flp_plan *plan)
{
    const flp_operator *op = plan->op;
    char text[FLP_PROBLEM_TEXT_BYTES];
    flp_status status = flp_problem_normalize(op, problem, (char *)plan + op->problem_at);

    if (status == FLP_OK && op->begin)
        status = op->begin(plan);
    if (status == FLP_OK)
        status = flp_problem_text_write(op, flp_plan_problem(plan), text, sizeof(text));
    if (status == FLP_OK)
        status = choose_path(plan, text);
    if (status == FLP_OK && flp_plan_on_gpu(plan))
        status = set_up_gpu(plan);
    if (status != FLP_OK)
        return status;
    plan->workspace_bytes = flp_plan_workspace_bytes(plan, flp_plan_rows(plan));
    plan->numerics = write_numerics(plan);
    plan->description = plan->numerics ? flp_describe_plan(plan, text) : NULL;
    if (!plan->description)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan's description");
    flp_log_info("plan %s: %s (%s)", text, flp_backend_name(plan->choice.path), plan->choice.reason);
    return FLP_OK;
}

flp_status flp_create_plan(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan)
{
    static atomic_uint_fast64_t plans;
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_status status;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a pointer to flp_plan *");
    *plan = NULL;
    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    *plan = calloc(1, op->plan_bytes);
    if (!*plan)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan");
    (*plan)->serial = atomic_fetch_add(&plans, 1) + 1;
    (*plan)->context = context;
    (*plan)->op = op;
    pthread_mutex_init(&(*plan)->tally_mutex, NULL);
    flp_status_keep_message(callers_message);
    status = set_up(problem, *plan);
    if (status == FLP_OK) {
        flp_status_restore_message(callers_message); /* what was tried in vain on the way is no failure of the call */
        atomic_fetch_add(&context->plans, 1);
        return FLP_OK;
    }
    flp_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

flp_status flp_create_plan_sized(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan, const flp_sizes *sizes)
{
    flp_problem_storage own;
    flp_status status = FLP_OK;

    if (plan)
        *plan = NULL;
    problem = flp_sized_take(op->problem_struct, sizes, problem, &own, &status);
    return status == FLP_OK ? flp_create_plan(context, op, problem, plan) : status;
}

void flp_plan_destroy(flp_plan *plan)
{
    if (!plan)
        return;
    flp_device_memory_free(&plan->device, plan->tallies);
    pthread_mutex_destroy(&plan->tally_mutex);
    free(plan->numerics);
    free(plan->description);
    free(plan);
}
