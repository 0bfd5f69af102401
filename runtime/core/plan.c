/* Plans: what operators ask when they set one up, what can be asked of one, its words, and creating it: path, kernels, memory. */
#include "core/plan.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/dispatch.h"
#include "cuda/device.h"

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
        return flp_status_fail(FLP_INTERNAL, "the generator chose no kernel for the role %s of %s", first_word(wanted & ~chosen), plan->op->name);
    if (chosen & ~(wanted | optional))
        return flp_status_fail(FLP_INTERNAL, "the generator chose a kernel for the role %s, which %s does not have", first_word(chosen & ~(wanted | optional)),
                               plan->op->name);
    return FLP_OK;
}

flp_status flp_plan_set_up_pass(const flp_plan *plan, const flp_operator *op, flp_role_set roles, flp_plan *pass)
{
    pass->context = plan->context;
    pass->op = op;
    pass->device = plan->device;
    pass->choice.path = plan->choice.path;
    for (unsigned role = 0; role < FLP_ROLES; role++)
        pass->kernels[role] = roles >> role & 1 ? plan->kernels[role] : NULL;
    memcpy(pass->group, plan->group, sizeof(pass->group));
    return op->set_up(pass);
}

int64_t flp_plan_workspace_bytes(const flp_plan *plan, int64_t rows)
{
    flp_workspace workspace;

    if (!plan || rows < 0 || rows > flp_plan_rows(plan))
        return -1;
    if (!flp_plan_on_gpu(plan) && plan->op->cpu_workspace_bytes)
        return plan->op->cpu_workspace_bytes(plan, rows);
    flp_plan_lay_out(plan, flp_plan_most_rows(plan, rows), &workspace);
    return workspace.bytes;
}

flp_backend flp_plan_backend(const flp_plan *plan)
{
    return plan ? plan->choice.path : FLP_BACKEND_AUTO;
}

const char *flp_plan_reason(const flp_plan *plan)
{
    return plan ? plan->choice.reason : "";
}

const char *flp_plan_numerics(const flp_plan *plan)
{
    return plan ? plan->numerics : "";
}

const char *flp_plan_describe(const flp_plan *plan)
{
    return plan ? plan->description : "";
}

void flp_describe_kernel(flp_text *text, const char *role, const flp_manifest *manifest)
{
    flp_text_append(text, "%s kernel: %s\n", role, manifest->variant);
    flp_text_append(text, "%s threads: %d\n", role, manifest->threads);
    flp_text_append(text, "%s shared bytes: %d\n", role, manifest->shared_bytes);
    flp_text_append(text, "%s registers: at most %d\n", role, manifest->registers);
}

void flp_describe_device(const flp_plan *plan, flp_text *text)
{
    const flp_device_facts *facts = &plan->device.facts;

    if (flp_plan_on_gpu(plan))
        flp_text_append(text, "%s, compute capability %d.%d, %d multiprocessors", facts->name, facts->compute_capability / 10, facts->compute_capability % 10,
                        facts->multiprocessors);
    else
        flp_text_append(text, "CPU, %d threads", flp_thread_pool_threads(plan->context->pool));
}

static void append_workspace(const flp_plan *plan, flp_text *text)
{
    const int64_t rows = flp_plan_rows(plan);
    flp_workspace workspace;

    flp_text_append(text, "workspace bytes: %" PRId64 "\n", plan->workspace_bytes);
    flp_plan_lay_out(plan, flp_plan_most_rows(plan, rows), &workspace);
    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++) {
        const flp_workspace_part *part = &workspace.part[i];

        if (part->name)
            flp_text_append(text, "workspace part: %s, %" PRId64 " bytes at %" PRId64 ", from %s to %s\n", part->name, part->bytes, part->offset,
                            workspace.steps[part->first], workspace.steps[part->last]);
    }
}

char *flp_describe_plan(const flp_plan *plan, const char *problem)
{
    flp_text text = { 0 };

    flp_text_append(&text, "problem: %s\npath: %s\nreason: %s\ndevice: ", problem, flp_backend_name(plan->choice.path), plan->choice.reason);
    flp_describe_device(plan, &text);
    flp_text_append(&text, "\n");
    if (plan->tuning[0])
        flp_text_append(&text, "tuning: %s\n", plan->tuning);
    if (flp_plan_on_gpu(plan))
        plan->op->describe(plan, &text);
    append_workspace(plan, &text);
    flp_text_append(&text, "numerics: %s\n", plan->numerics);
    if (text.failed)
        flp_text_free(&text);
    return text.data;
}

static flp_status set_up_gpu(flp_plan *plan)
{
    const flp_selection *selection = &plan->choice.selection;
    const flp_kernel *kernels[FLP_ROLES];
    flp_status status = flp_kernel_store_get(plan->context->store, &plan->device, selection->count, selection->variant, kernels);

    for (int i = 0; status == FLP_OK && i < selection->count; i++) {
        plan->kernels[selection->role[i]] = kernels[i];
        plan->group[selection->role[i]] = selection->group[i];
    }
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

/* The same path with a tuning's kernels; the choice stays where they cannot be had. */
static flp_status choose_tuned(flp_plan *plan, const flp_choice_wanted *untuned, const char *tuning)
{
    const flp_choice_wanted wanted = { untuned->problem, tuning, plan->choice.path, 1 };
    flp_choice choice;
    flp_status status = flp_choose_path(plan->context, &wanted, &plan->device, &choice);

    if (status != FLP_OK)
        return status;
    plan->choice.selection = choice.selection;
    snprintf(plan->tuning, sizeof(plan->tuning), "%s", tuning);
    return FLP_OK;
}

void flp_plan_kernels_text(const flp_plan *plan, char *text)
{
    size_t length;

    *text = 0;
    flp_problem_text_write(plan->op, flp_plan_problem(plan), text, FLP_PROBLEM_TEXT_BYTES);
    length = strlen(text);
    snprintf(text + length, FLP_PLAN_KERNELS_BYTES - length, "%s", plan->op->hint ? plan->op->hint(plan) : "");
}

flp_status flp_tuned_problem_text(const flp_operator *op, const void *normal, char *text)
{
    flp_problem_storage problem;

    memcpy(&problem, normal, op->problem_bytes);
    *flp_operator_rows(op, &problem) = flp_dispatch_rows(*flp_operator_rows(op, &problem));
    memcpy(problem.bytes + op->backend_at, &(flp_backend){ FLP_BACKEND_AUTO }, sizeof(flp_backend));
    return flp_problem_text_write(op, &problem, text, FLP_PROBLEM_TEXT_BYTES);
}

/* tuning: NULL: none. */
static flp_status choose_path(flp_plan *plan, const char *tuning)
{
    const flp_operator *op = plan->op;
    char text[FLP_PLAN_KERNELS_BYTES];
    const flp_choice_wanted wanted = { text, "", flp_operator_backend(op, flp_plan_problem(plan)), op->stays_on_gpu };
    flp_status status;

    flp_plan_kernels_text(plan, text);
    status = flp_choose_path(plan->context, &wanted, &plan->device, &plan->choice);
    if (status != FLP_OK || !tuning || !*tuning)
        return status;
    if (!flp_plan_on_gpu(plan))
        return flp_status_fail(FLP_NO_VARIANT, "tuning \"%s\": the CPU path has no kernels to tune", tuning);
    return choose_tuned(plan, &wanted, tuning);
}

/* What no device is needed for. text: receives the problem's canonical string. */
static flp_status begin(const void *problem, flp_plan *plan, char text[FLP_PROBLEM_TEXT_BYTES])
{
    const flp_operator *op = plan->op;
    flp_status status = flp_problem_normalize(op, problem, (char *)plan + op->problem_at);

    if (status == FLP_OK && op->begin)
        status = op->begin(plan);
    return status == FLP_OK ? flp_problem_text_write(op, flp_plan_problem(plan), text, FLP_PROBLEM_TEXT_BYTES) : status;
}

static flp_status set_up(const void *problem, const char *tuning, flp_plan *plan)
{
    char text[FLP_PROBLEM_TEXT_BYTES];
    flp_status status = begin(problem, plan, text);

    if (status == FLP_OK)
        status = choose_path(plan, tuning);
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

static flp_status make(flp_context *context, const flp_operator *op, flp_plan **plan)
{
    static atomic_uint_fast64_t plans;

    *plan = calloc(1, op->plan_bytes);
    if (!*plan)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan");
    (*plan)->serial = atomic_fetch_add(&plans, 1) + 1;
    (*plan)->context = context;
    (*plan)->op = op;
    pthread_mutex_init(&(*plan)->tally_mutex, NULL);
    return FLP_OK;
}

flp_status flp_plan_select(flp_context *context, const flp_operator *op, const void *problem, int compute_capability, flp_selection *selection)
{
    char text[FLP_PROBLEM_TEXT_BYTES], with_hint[FLP_PLAN_KERNELS_BYTES];
    flp_plan *plan;
    flp_status status = make(context, op, &plan);

    *selection = (flp_selection){ 0 };
    if (status == FLP_OK)
        status = begin(problem, plan, text);
    if (status == FLP_OK && flp_operator_backend(op, flp_plan_problem(plan)) != FLP_BACKEND_CPU) {
        const flp_wanted_kernels wanted = { with_hint, compute_capability, flp_backend_name(flp_operator_backend(op, flp_plan_problem(plan))), "" };

        flp_plan_kernels_text(plan, with_hint);
        status = flp_generator_select(flp_kernel_store_generator(context->store), &wanted, selection);
    }
    flp_plan_destroy(plan);
    return status;
}

flp_status flp_create_plan(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan)
{
    return flp_create_plan_tuned(context, op, problem, NULL, plan);
}

flp_status flp_create_plan_tuned(flp_context *context, const flp_operator *op, const void *problem, const char *tuning, flp_plan **plan)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_status status;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a pointer to flp_plan *");
    *plan = NULL;
    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    status = make(context, op, plan);
    if (status != FLP_OK)
        return status;
    flp_status_keep_message(callers_message);
    status = set_up(problem, tuning, *plan);
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
