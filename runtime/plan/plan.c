/* Creates plans of any operator: path, kernels, memory, and what is said of them. */
#include "plan/plan.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "plan/device_memory.h"
#include "plan/tally.h"

int flp_plan_on_gpu(const flp_plan *plan)
{
    return plan->choice.path != FLP_BACKEND_CPU;
}

static void *problem_of(flp_plan *plan)
{
    return (char *)plan + plan->operator->problem_at;
}

const void *flp_plan_problem(const flp_plan *plan)
{
    return (const char *)plan + plan->operator->problem_at;
}

int64_t flp_plan_rows(const flp_plan *plan)
{
    return *(const int64_t *)(const void *)((const char *)flp_plan_problem(plan) + plan->operator->rows_at);
}

flp_status flp_plan_check_operator(const flp_plan *plan, const flp_operator *operator)
{
    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted one of %s", operator->name);
    if (plan->operator == operator)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got one of %s, wanted one of %s", plan->operator->name, operator->name);
}

flp_status flp_plan_check_context(const flp_plan *plan, unsigned long long cuda_context)
{
    if (cuda_context == plan->device.context_id)
        return FLP_OK;
    return flp_status_fail(FLP_WRONG_CONTEXT, "the current CUDA context is number %llu, the plan belongs to number %llu",
                           cuda_context, plan->device.context_id);
}

/* roles: not empty. */
static const char *first_word(flp_role_set roles)
{
    return flp_role_word((flp_role)__builtin_ctz(roles));
}

flp_status flp_plan_check_kernels(const flp_plan *plan, flp_role_set wanted, flp_role_set optional)
{
    flp_role_set chosen = 0;

    for (unsigned role = 0; role < FLP_ROLES; role++)
        chosen |= (flp_role_set)(plan->kernels[role] != NULL) << role;
    if (wanted & ~chosen)
        return flp_status_fail(FLP_INTERNAL, "the generator chose no kernel for the role %s of %s", first_word(wanted & ~chosen), plan->operator->name);
    if (chosen & ~(wanted | optional))
        return flp_status_fail(FLP_INTERNAL, "the generator chose a kernel for the role %s, which %s does not have", first_word(chosen & ~(wanted | optional)),
                               plan->operator->name);
    return FLP_OK;
}

flp_status flp_plan_set_up_pass(const flp_plan *plan, const flp_operator *operator, flp_role_set roles, flp_plan *pass)
{
    pass->context = plan->context;
    pass->operator = operator;
    pass->device = plan->device;
    pass->choice.path = plan->choice.path;
    for (unsigned role = 0; role < FLP_ROLES; role++)
        pass->kernels[role] = roles >> role & 1 ? plan->kernels[role] : NULL;
    return operator->set_up(pass);
}

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
    return status == FLP_OK ? plan->operator->set_up(plan) : status;
}

static char *write_numerics(const flp_plan *plan)
{
    flp_text text = { 0 };

    plan->operator->write_numerics(plan, &text);
    if (text.failed)
        flp_text_free(&text);
    return text.data;
}

static flp_status choose_path(flp_plan *plan, const char *text)
{
    const flp_operator *operator = plan->operator;
    char with_hint[FLP_PROBLEM_TEXT_BYTES + 32];

    snprintf(with_hint, sizeof(with_hint), "%s%s", text, operator->hint ? operator->hint(plan) : "");
    return flp_choose_path(plan->context, flp_operator_backend(operator, flp_plan_problem(plan)), operator->stays_on_gpu, with_hint,
                           &plan->device, &plan->choice);
}

static flp_status set_up(const void *problem, flp_plan *plan)
{
    const flp_operator *operator = plan->operator;
    char text[FLP_PROBLEM_TEXT_BYTES];
    flp_status status = flp_problem_normalize(operator, problem, problem_of(plan));

    if (status == FLP_OK && operator->begin)
        status = operator->begin(plan);
    if (status == FLP_OK)
        status = flp_problem_text_write(operator, flp_plan_problem(plan), text, sizeof(text));
    if (status == FLP_OK)
        status = choose_path(plan, text);
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

flp_status flp_plan_make(flp_context *context, const flp_operator *operator, const void *problem, flp_plan **plan)
{
    static atomic_uint_fast64_t plans;
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_status status;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a pointer to flp_plan *");
    *plan = NULL;
    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    *plan = calloc(1, operator->plan_bytes);
    if (!*plan)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan");
    (*plan)->serial = atomic_fetch_add(&plans, 1) + 1;
    (*plan)->context = context;
    (*plan)->operator = operator;
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

flp_status flp_plan_make_sized(flp_context *context, const flp_operator *operator, const void *problem, flp_plan **plan, const flp_sizes *sizes)
{
    flp_problem_storage own;
    flp_status status = FLP_OK;

    if (plan)
        *plan = NULL;
    problem = flp_sized_take(operator->problem_struct, sizes, problem, &own, &status);
    return status == FLP_OK ? flp_plan_make(context, operator, problem, plan) : status;
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

void flp_plan_lay_out(const flp_plan *plan, int64_t rows, flp_workspace *workspace)
{
    if (flp_plan_on_gpu(plan) && plan->operator->lay_out)
        plan->operator->lay_out(plan, rows, workspace);
    else
        *workspace = (flp_workspace){ .bytes = 0 };
}

int64_t flp_plan_most_rows(const flp_plan *plan, int64_t rows)
{
    return flp_plan_on_gpu(plan) && plan->operator->most_rows ? plan->operator->most_rows(plan, rows) : rows;
}

int64_t flp_plan_workspace_bytes(const flp_plan *plan, int64_t rows)
{
    flp_workspace workspace;

    if (!plan || rows < 0 || rows > flp_plan_rows(plan))
        return -1;
    if (!flp_plan_on_gpu(plan) && plan->operator->cpu_workspace_bytes)
        return plan->operator->cpu_workspace_bytes(plan, rows);
    flp_plan_lay_out(plan, flp_plan_most_rows(plan, rows), &workspace);
    return workspace.bytes;
}

const char *flp_plan_numerics(const flp_plan *plan)
{
    return plan ? plan->numerics : "";
}

const char *flp_plan_describe(const flp_plan *plan)
{
    return plan ? plan->description : "";
}
