/* Plans: what an operator's set_up calls, what callers can ask of a plan, its description, and how it is created: path, tuning, kernels, memory. */
#include "core/plan.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
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

flp_tuned_by flp_plan_tuned_by(const flp_plan *plan)
{
    return plan ? plan->tuned.by : FLP_TUNED_NOT;
}

const char *flp_plan_tuning(const flp_plan *plan)
{
    return plan ? plan->tuned.tuning : "";
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

/* The text of flp_plan_describe, malloc'ed; NULL when out of memory. problem: its canonical string. */
static char *describe_plan(const flp_plan *plan, const char *problem)
{
    flp_text text = { 0 };

    flp_text_append(&text, "problem: %s\npath: %s\nreason: %s\ndevice: ", problem, flp_backend_name(plan->choice.path), plan->choice.reason);
    flp_describe_device(plan, &text);
    flp_text_append(&text, "\n");
    if (flp_plan_on_gpu(plan))
        flp_text_append(&text, "tuning: %s (%s)\n", plan->tuned.tuning[0] ? plan->tuned.tuning : "default",
                        plan->tuned.source[0] ? plan->tuned.source : "no record");
    if (flp_plan_on_gpu(plan))
        plan->op->describe(plan, &text);
    append_workspace(plan, &text);
    flp_text_append(&text, "numerics: %s\n", plan->numerics);
    if (text.failed)
        flp_text_free(&text);
    return text.data;
}

static flp_status get_kernels(const flp_plan *plan, const flp_selection *selection, const flp_kernel **kernels)
{
    return flp_kernel_store_get(plan->context->store, &plan->device, selection->count, selection->variant, kernels);
}

/* How a tuning launches kernels. An operator without such items takes any. */
static flp_status take_tuning(flp_plan *plan, const char *tuning)
{
    return plan->op->take_tuning ? plan->op->take_tuning(plan, tuning) : FLP_OK;
}

/* Falls back to the kernels of plan->tuned.base: those without a tuning, or with the one that decides on a row's bits. A prebuild has these even where the
 * kernels of a record's tuning can be neither found nor compiled. */
static flp_status get_untuned_kernels(flp_plan *plan, const char *text, const flp_kernel **kernels)
{
    const flp_choice_wanted wanted = { text, plan->tuned.base, plan->choice.path, 1 };
    flp_choice choice;
    flp_status status = flp_choose_path(plan->context, &wanted, &plan->device, &choice);

    if (status == FLP_OK)
        status = get_kernels(plan, &choice.selection, kernels);
    if (status == FLP_OK)
        status = take_tuning(plan, plan->tuned.base);
    if (status != FLP_OK)
        return status;
    flp_log_warning("%s: the kernels of its tuning, %s, are in no cache and cannot be compiled; it takes the default", text, plan->tuned.tuning);
    plan->choice.selection = choice.selection;
    plan->tuned.by = FLP_TUNED_NOT;
    strcpy(plan->tuned.tuning, plan->tuned.base);
    strcpy(plan->tuned.source, "the kernels of its tuning are in no cache and cannot be compiled");
    return FLP_OK;
}

/* Where a kernel is in no cache and cannot be compiled, falls back to the kernels without the tuning, then to the PTX of portable kernels of an older GPU. */
static flp_status get_kernels_or_ptx(flp_plan *plan, const flp_kernel **kernels)
{
    char text[FLP_PLAN_KERNELS_BYTES], why[FLP_STATUS_MESSAGE_BYTES];
    const flp_choice_wanted wanted = { text, "", flp_operator_backend(plan->op, flp_plan_problem(plan)), 1 };
    flp_status status = get_kernels(plan, &plan->choice.selection, kernels);
    flp_choice choice = { 0 };

    if (status != FLP_NO_NVRTC || plan->context->flags & FLP_CONTEXT_REPLAY)
        return status;
    flp_status_keep_message(why);
    status = flp_plan_kernels_text(plan, text);
    if (status != FLP_OK)
        return status;
    if (plan->tuned.by != FLP_TUNED_NOT && plan->tuned.tuning[0] && get_untuned_kernels(plan, text, kernels) == FLP_OK)
        return FLP_OK;
    if (flp_choose_ptx(plan->context, &wanted, &plan->device, why, &choice) == FLP_OK && get_kernels(plan, &choice.selection, kernels) == FLP_OK &&
        take_tuning(plan, "") == FLP_OK) {
        plan->choice = choice;
        plan->tuned = (flp_tuned){ .by = FLP_TUNED_NOT };
        flp_log_warning("%s runs on %s as %s", text, plan->device.facts.name, choice.reason);
        return FLP_OK;
    }
    flp_status_restore_message(why);
    return FLP_NO_NVRTC;
}

static flp_status set_up_gpu(flp_plan *plan)
{
    const flp_selection *selection = &plan->choice.selection;
    const flp_kernel *kernels[FLP_ROLES];
    flp_status status = get_kernels_or_ptx(plan, kernels);

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

/* Changes the plan's kernels to those of a tuning, on the same path. After a failure the choice is as it was. */
static flp_status choose_tuned(flp_plan *plan, const flp_choice_wanted *untuned, const char *tuning)
{
    const flp_choice_wanted wanted = { untuned->problem, tuning, plan->choice.path, 1 };
    flp_choice choice;
    flp_status status = flp_choose_path(plan->context, &wanted, &plan->device, &choice);

    if (status == FLP_OK)
        status = take_tuning(plan, tuning);
    if (status != FLP_OK)
        return status;
    plan->choice.selection = choice.selection;
    return FLP_OK;
}

static void write_hint(const flp_plan *plan, char *text)
{
    *text = 0;
    if (plan->op->hint)
        plan->op->hint(plan, text);
}

flp_status flp_plan_kernels_text(const flp_plan *plan, char *text)
{
    char hint[FLP_HINT_BYTES];
    size_t length;
    flp_status status;

    *text = 0;
    status = flp_problem_text_write(plan->op, flp_plan_problem(plan), text, FLP_PROBLEM_TEXT_BYTES);
    if (status != FLP_OK)
        return status;
    length = strlen(text);
    write_hint(plan, hint);
    snprintf(text + length, FLP_PLAN_KERNELS_BYTES - length, "%s", hint);
    return FLP_OK;
}

/* Applies the tuning that flp_tuned_find finds, if any. A tuning that cannot be applied is left out with a warning. */
static flp_status tune_by_records(flp_plan *plan, const flp_choice_wanted *untuned)
{
    char hint[FLP_HINT_BYTES];
    const flp_tuned_question question = { plan->op, flp_plan_problem(plan), untuned->problem, hint, &plan->device, &plan->choice };

    write_hint(plan, hint);
    flp_tuned_find(plan->context, &question, &plan->tuned);
    if (plan->tuned.tuning[0] && choose_tuned(plan, untuned, plan->tuned.tuning) != FLP_OK) {
        flp_log_warning("the tuning that was found is left out: %s", flp_error_message());
        plan->tuned = (flp_tuned){ .by = FLP_TUNED_NOT };
    }
    if (plan->context->flags & FLP_CONTEXT_REPLAY && plan->tuned.by != FLP_TUNED_EXACT)
        return flp_status_fail(FLP_NO_VARIANT, "%s: no exact record of a tuning, and the context has FLP_CONTEXT_REPLAY%s%s", untuned->problem,
                               plan->tuned.source[0] ? ": " : "", plan->tuned.source);
    return FLP_OK;
}

/* tuning NULL: the one that flp_tuned_find finds. */
static flp_status choose_path(flp_plan *plan, const char *tuning)
{
    const flp_operator *op = plan->op;
    char text[FLP_PLAN_KERNELS_BYTES];
    const flp_choice_wanted wanted = { text, "", flp_operator_backend(op, flp_plan_problem(plan)), op->stays_on_gpu };
    flp_status status = flp_plan_kernels_text(plan, text);

    if (status == FLP_OK)
        status = flp_choose_path(plan->context, &wanted, &plan->device, &plan->choice);
    if (status != FLP_OK)
        return status;
    if (!flp_plan_on_gpu(plan))
        return !tuning || !*tuning ? FLP_OK : flp_status_fail(FLP_NO_VARIANT, "tuning \"%s\": the CPU path has no kernels to tune", tuning);
    if (!tuning)
        return tune_by_records(plan, &wanted);
    snprintf(plan->tuned.tuning, sizeof(plan->tuned.tuning), "%s", tuning);
    return *tuning ? choose_tuned(plan, &wanted, tuning) : FLP_OK;
}

static flp_status set_up(const char *text, const char *tuning, flp_plan *plan)
{
    flp_status status = choose_path(plan, tuning);

    if (status == FLP_OK && flp_plan_on_gpu(plan))
        status = set_up_gpu(plan);
    if (status != FLP_OK)
        return status;
    plan->workspace_bytes = flp_plan_workspace_bytes(plan, flp_plan_rows(plan));
    plan->numerics = write_numerics(plan);
    plan->description = plan->numerics ? describe_plan(plan, text) : NULL;
    if (!plan->description)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan's description");
    flp_log_info("plan %s: %s (%s)", text, flp_backend_name(plan->choice.path), plan->choice.reason);
    return FLP_OK;
}

/* Makes a plan as far as this needs no device. The caller destroys *plan, after a failure too. text: receives the problem's canonical string. */
static flp_status begin(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan, char text[FLP_PROBLEM_TEXT_BYTES])
{
    static atomic_uint_fast64_t plans;
    flp_status status;

    *plan = calloc(1, op->plan_bytes);
    if (!*plan)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a plan");
    (*plan)->serial = atomic_fetch_add(&plans, 1) + 1;
    (*plan)->context = context;
    (*plan)->op = op;
    pthread_mutex_init(&(*plan)->tally_mutex, NULL);
    status = flp_problem_normalize(op, problem, (char *)*plan + op->problem_at);
    if (status == FLP_OK && op->begin)
        status = op->begin(*plan);
    return status == FLP_OK ? flp_problem_text_write(op, flp_plan_problem(*plan), text, FLP_PROBLEM_TEXT_BYTES) : status;
}

flp_status flp_plan_select(flp_context *context, const flp_operator *op, const void *problem, int compute_capability, flp_selection *selection)
{
    char text[FLP_PROBLEM_TEXT_BYTES], with_hint[FLP_PLAN_KERNELS_BYTES];
    flp_plan *plan;
    flp_status status = begin(context, op, problem, &plan, text);

    *selection = (flp_selection){ 0 };
    if (status == FLP_OK && flp_operator_backend(op, flp_plan_problem(plan)) != FLP_BACKEND_CPU) {
        const flp_wanted_kernels wanted = { with_hint, compute_capability, flp_backend_name(flp_operator_backend(op, flp_plan_problem(plan))), "" };

        status = flp_plan_kernels_text(plan, with_hint);
        if (status == FLP_OK)
            status = flp_generator_select(flp_kernel_store_generator(context->store), &wanted, selection);
    }
    flp_plan_destroy(plan);
    return status;
}

static void take_each(const flp_selection *selection, void (*take)(void *data, const char *variant), void *data)
{
    for (int i = 0; i < selection->count; i++)
        take(data, selection->variant[i]);
}

flp_status flp_plan_visit_kernels(flp_context *context, const flp_operator *op, const void *problem, int compute_capability,
                                  void (*take)(void *data, const char *variant), void *data)
{
    char text[FLP_PROBLEM_TEXT_BYTES], with_hint[FLP_PLAN_KERNELS_BYTES], *rest = NULL;
    flp_text tunings = { 0 };
    flp_selection selection, tuned; /* `wanted` points to selection.path, so later selections go to `tuned` */
    flp_plan *plan = NULL;
    flp_status status = flp_plan_select(context, op, problem, compute_capability, &selection);
    flp_wanted_kernels wanted = { with_hint, compute_capability, selection.path, "" };

    if (status == FLP_OK && selection.count)
        status = begin(context, op, problem, &plan, text);
    if (!plan)
        return status;
    take_each(&selection, take, data);
    if (status == FLP_OK)
        status = flp_plan_kernels_text(plan, with_hint);
    if (status == FLP_OK)
        status = flp_tuned_list(context, op, flp_plan_problem(plan), &wanted, &tunings);
    wanted.tuning = status == FLP_OK && tunings.data ? strtok_r(tunings.data, "\n", &rest) : NULL;
    for (; status == FLP_OK && wanted.tuning; wanted.tuning = strtok_r(NULL, "\n", &rest)) {
        status = flp_generator_select(flp_kernel_store_generator(context->store), &wanted, &tuned);
        if (status == FLP_OK)
            take_each(&tuned, take, data);
    }
    flp_text_free(&tunings);
    flp_plan_destroy(plan);
    return status;
}

flp_status flp_plan_identify(flp_context *context, const flp_operator *op, const void *problem, const flp_wanted_kernels *wanted, flp_record_identity *identity)
{
    char text[FLP_PROBLEM_TEXT_BYTES], with_hint[FLP_PLAN_KERNELS_BYTES];
    const flp_wanted_kernels kernels = { with_hint, wanted->compute_capability, wanted->backend, wanted->tuning };
    flp_plan *plan;
    flp_status status = begin(context, op, problem, &plan, text);

    if (status == FLP_OK)
        status = flp_plan_kernels_text(plan, with_hint);
    if (status == FLP_OK)
        status = flp_tuned_identify(context, &kernels, identity);
    if (status == FLP_OK)
        status = flp_tuned_problem_text(op, flp_plan_problem(plan), identity->problem);
    flp_plan_destroy(plan);
    return status;
}

flp_status flp_plan_write_wanted(flp_context *context, const flp_operator *op, const void *problem, char *text)
{
    char plain[FLP_PROBLEM_TEXT_BYTES];
    flp_plan *plan;
    flp_status status = begin(context, op, problem, &plan, plain);

    if (status == FLP_OK)
        status = flp_plan_kernels_text(plan, text);
    flp_plan_destroy(plan);
    return status;
}

/* The workspace as a GPU path lays it out before its kernels are chosen, which may have fewer splits. */
static int64_t own_bytes(const flp_plan *plan)
{
    flp_workspace workspace = { .bytes = 0 };

    if (plan->op->lay_out)
        plan->op->lay_out(plan, flp_plan_rows(plan), &workspace);
    return workspace.bytes;
}

flp_status flp_plan_offer(flp_context *context, const flp_operator *op, const void *problem, int decides_bits, int64_t most_bytes, flp_text *tunings)
{
    char text[FLP_PROBLEM_TEXT_BYTES];
    flp_plan *plan;
    flp_status status = begin(context, op, problem, &plan, text);

    if (status == FLP_OK && op->offer_tunings)
        op->offer_tunings(plan, decides_bits, most_bytes == FLP_PLAN_OWN_BYTES ? own_bytes(plan) : most_bytes, tunings);
    flp_plan_destroy(plan);
    return status == FLP_OK && tunings->failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for tunings") : status;
}

flp_status flp_plan_foresee(flp_context *context, const flp_operator *op, const void *problem, flp_selection *selection)
{
    char text[FLP_PROBLEM_TEXT_BYTES];
    flp_plan *plan;
    flp_status status = begin(context, op, problem, &plan, text);

    *selection = (flp_selection){ 0 };
    if (status == FLP_OK)
        status = choose_path(plan, NULL);
    if (status == FLP_OK && flp_plan_on_gpu(plan))
        *selection = plan->choice.selection;
    flp_plan_destroy(plan);
    return status;
}

flp_status flp_create_plan(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan)
{
    return flp_create_plan_tuned(context, op, problem, NULL, plan);
}

flp_status flp_create_plan_tuned(flp_context *context, const flp_operator *op, const void *problem, const char *tuning, flp_plan **plan)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES], text[FLP_PROBLEM_TEXT_BYTES];
    flp_status status;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a pointer to flp_plan *");
    *plan = NULL;
    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    flp_status_keep_message(callers_message);
    status = begin(context, op, problem, plan, text);
    if (status == FLP_OK)
        status = set_up(text, tuning, *plan);
    if (status == FLP_OK) {
        flp_status_restore_message(callers_message); /* what was tried in vain on the way is no failure of the call */
        atomic_fetch_add(&context->plans, 1);
        return FLP_OK;
    }
    flp_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

void flp_plan_say_untuned(flp_plan *plan, const char *why)
{
    char text[FLP_PROBLEM_TEXT_BYTES], *description;
    const size_t length = strlen(plan->tuned.source);

    snprintf(plan->tuned.source + length, sizeof(plan->tuned.source) - length, "%s; not tuned: %s", length ? "" : "no record", why);
    if (flp_problem_text_write(plan->op, flp_plan_problem(plan), text, sizeof(text)) != FLP_OK || !(description = describe_plan(plan, text)))
        return;
    free(plan->description);
    plan->description = description;
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
