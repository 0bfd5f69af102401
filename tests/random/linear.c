/* The linear operators of the random tester: what is asked, and its execution. */
#include "random/linear.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/row_buckets.h"
#include "cross_entropy_cases.h"
#include "random/inputs.h"
#include "random/suite.h"

static const char *const losses[] = { "", "policy_gradient", "policy_gradient_kl", flp_cross_entropy_case_loss_name };

/* ---- what is asked ---- */

static void ask_forward(const flp_random_problem *p, flp_linear_logp_problem *asked)
{
    *asked = (flp_linear_logp_problem){ .dtype = (flp_dtype)p->dtype,
                                        .rows = p->n + p->spare,
                                        .hidden = p->d,
                                        .vocab = p->v,
                                        .weight_layout = p->columns ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN,
                                        .hidden_stride = p->d + p->hidden_gap,
                                        .weight_stride = (p->columns ? p->v + p->vocab_padding : p->d) + p->weight_gap,
                                        .pointer_alignment = p->misalignment & -p->misalignment,
                                        .bias_dtype = (flp_dtype)p->bias,
                                        .target_dtype = p->target_i32 ? FLP_I32 : FLP_I64,
                                        .softcap = p->softcap,
                                        .argmax = p->argmax,
                                        .entropy = p->op == FLP_RANDOM_LINEAR && p->entropy,
                                        .precision = p->exact ? FLP_PRECISION_EXACT : FLP_PRECISION_TENSOR,
                                        .backend = p->portable ? FLP_BACKEND_PORTABLE : FLP_BACKEND_AUTO };
}

static void ask(flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    flp_linear_logp_backward_problem *backward = &linear->asked.backward;

    ask_forward(p, &backward->forward);
    backward->grad_hidden = (flp_dtype)p->grad_hidden;
    backward->grad_weight = (flp_dtype)p->grad_weight;
    backward->grad_bias = (flp_dtype)p->grad_bias;
    backward->grad_hidden_stride = p->grad_hidden ? p->d + p->grad_hidden_gap : 0;
    backward->grad_weight_stride = p->grad_weight ? (p->columns ? p->v : p->d) + p->grad_weight_gap : 0;
    backward->accumulate = (unsigned)p->accumulate;
    backward->g_lse = p->g_lse;
    backward->g_entropy = p->g_entropy;
    backward->grad_filter_eps = p->filter;
    backward->with_forward = p->forward;
    linear->asked.reduction = (flp_reduction)p->reduction;
    linear->asked.label_smoothing = p->smoothing;
    linear->asked.class_weights = (flp_dtype)p->classes;
    linear->asked.token_weights = p->tokens;
    linear->asked.entropy = p->op == FLP_RANDOM_CROSS_ENTROPY && p->entropy;
    strcpy(linear->asked.token_loss, losses[p->loss]);
}

/* ---- the truth of a loss ---- */

static double *column(const flp_random_linear *linear)
{
    double *numbers = calloc((size_t)linear->problem->n + 1, sizeof(*numbers));

    if (!numbers)
        abort();
    return numbers;
}

/* fp32 has no room for what a row's logits add up to, in base 2. */
static int has_infinite_sum(const flp_random_linear *linear, int64_t i)
{
    const flp_random_problem *p = linear->problem;
    const double scale = M_LOG2E / flp_random_linear_temperature(linear, i);
    double sum = 0;

    for (int64_t v = 0; v < p->v; v++) {
        const double logit = p->softcap > 0 ? p->softcap : fabs(linear->logit[i * p->v + v]);
        sum += scale * logit * fmax(1, fabs(linear->loss.class_weights[v]));
    }
    return sum > FLT_MAX;
}

/* A row's loss is made of numbers about as large as itself before and after its token's weight, and of the logits' sum where it is by all of them. */
static void find_losses_beyond(flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    const float *tokens = flp_random_memory_at(&linear->memory, FLP_RANDOM_TOKENS);
    const int is_of_all = (p->smoothing && p->label_smoothing > 0) || p->loss == FLP_RANDOM_LOSS_OWN;

    linear->loss_beyond = calloc((size_t)p->n + 1, 1);
    if (!linear->loss_beyond)
        abort();
    for (int64_t i = 0; i < p->n; i++) {
        const double size = fabs(linear->loss.loss[i]) + linear->loss.error[i], weight = tokens ? fabs(tokens[i]) : 1;
        if (!flp_random_linear_has_part(linear, i))
            continue;
        linear->loss_beyond[i] = size > FLT_MAX || (weight > 0 && size / weight > FLT_MAX) || (is_of_all && has_infinite_sum(linear, i));
        linear->total_beyond |= linear->loss_beyond[i];
    }
    linear->total_beyond |= fabs(linear->loss.total) + linear->loss.total_error > FLT_MAX;
}

static void compute_loss(flp_random_linear *linear)
{
    flp_reference *as = &linear->as_reference;
    flp_random_cross_entropy_call call;
    flp_linear_cross_entropy_problem problem = linear->asked;

    *as = (flp_reference){ .rows = linear->problem->n,
                           .vocab = linear->problem->v,
                           .logits = linear->logit,
                           .logp = column(linear),
                           .lse = column(linear),
                           .entropy = column(linear),
                           .rounding = column(linear),
                           .entropy_rounding = column(linear),
                           .logp_rounding = column(linear) };
    for (int64_t i = 0; i < as->rows; i++) {
        as->logp[i] = linear->row[i].logp;
        as->lse[i] = linear->row[i].lse;
        as->entropy[i] = linear->row[i].entropy;
        as->rounding[i] = linear->row[i].lse_error;
        as->logp_rounding[i] = linear->row[i].logp_error;
        as->entropy_rounding[i] = linear->row[i].entropy_error;
    }
    flp_random_cross_entropy_args(linear, NULL, &call);
    if (!flp_cross_entropy_reference_compute(&problem, &call.args, as, &linear->loss))
        abort();
    find_losses_beyond(linear);
}

static void free_linear(void *state)
{
    flp_random_linear *linear = state;

    flp_random_linear_free_truth(linear);
    flp_random_memory_free(&linear->memory);
    free(linear);
}

static void *make(const flp_random_problem *problem)
{
    flp_random_linear *linear = calloc(1, sizeof(*linear));

    if (!linear)
        abort();
    linear->problem = problem;
    ask(linear);
    flp_random_linear_make_inputs(linear);
    if (problem->op == FLP_RANDOM_CROSS_ENTROPY)
        compute_loss(linear);
    if (problem->op != FLP_RANDOM_LINEAR)
        flp_random_linear_differentiate(linear);
    flp_random_memory_seal(&linear->memory);
    return linear;
}

/* ---- execution ---- */

typedef struct {
    flp_random_linear *linear;
    const flp_random_machine *machine;
    flp_plan *plan; /* NULL: dispatched */
    char *message;
    size_t bytes;
} run;

static int fail(const run *r, const char *what)
{
    snprintf(r->message, r->bytes, "%s: %s", what, flp_error_message());
    return 0;
}

static flp_status create_plan(run *r)
{
    const flp_linear_cross_entropy_problem *asked = &r->linear->asked;

    if (r->linear->problem->op == FLP_RANDOM_LINEAR)
        return flp_linear_logp_plan_create(r->machine->context, &asked->backward.forward, &r->plan);
    if (r->linear->problem->op == FLP_RANDOM_LINEAR_BACKWARD)
        return flp_linear_logp_backward_plan_create(r->machine->context, &asked->backward, &r->plan);
    return flp_linear_cross_entropy_plan_create(r->machine->context, asked, &r->plan);
}

/* The least is what the library itself says when it refuses less. */
static int64_t least_budget(run *r)
{
    static const char words[] = "at least ";
    const char *place;

    r->linear->asked.backward.memory_budget = 1;
    if (create_plan(r) == FLP_OK) {
        flp_plan_destroy(r->plan);
        r->plan = NULL;
        return 1;
    }
    place = strstr(flp_error_message(), words);
    return place ? strtoll(place + strlen(words), NULL, 10) : 1;
}

static void choose_budget(run *r)
{
    const flp_random_problem *p = r->linear->problem;
    flp_linear_logp_backward_problem *backward = &r->linear->asked.backward;
    const int64_t rows = p->dispatched ? flp_row_buckets_rows(p->n) : p->n + p->spare, asked = backward->forward.rows;

    if (p->budget < 0 || p->op == FLP_RANDOM_LINEAR)
        return;
    backward->forward.rows = rows;
    const int64_t least = least_budget(r), more = least * 3 + rows * p->v * 4 + rows * p->d * 8;
    backward->memory_budget = least + (int64_t)(p->budget * p->budget * (double)more);
    backward->forward.rows = asked;
}

static flp_status run_forward(const run *r)
{
    flp_linear_logp_args args;

    flp_random_linear_args(r->linear, r->machine, &args);
    if (r->linear->problem->op == FLP_RANDOM_LINEAR_BACKWARD)
        return flp_linear_logp_backward_execute_forward(r->plan, &args);
    return r->plan ? flp_linear_logp_execute(r->plan, &args) : flp_linear_logp(r->machine->context, &r->linear->asked.backward.forward, &args);
}

static flp_status run_backward(const run *r)
{
    flp_linear_logp_backward_args args;

    flp_random_linear_backward_args(r->linear, r->machine, &args);
    return r->plan ? flp_linear_logp_backward_execute(r->plan, &args) : flp_linear_logp_backward(r->machine->context, &r->linear->asked.backward, &args);
}

static flp_status run_loss(const run *r)
{
    flp_random_cross_entropy_call call;

    flp_random_cross_entropy_args(r->linear, r->machine, &call);
    return r->plan ? flp_linear_cross_entropy_execute(r->plan, &call.args) : flp_linear_cross_entropy(r->machine->context, &r->linear->asked, &call.args);
}

static flp_status run_once(const run *r)
{
    const flp_random_problem *p = r->linear->problem;
    flp_status status = FLP_OK;

    if (p->shards)
        return flp_random_linear_run_shards(r->linear, r->machine);
    if (p->op == FLP_RANDOM_CROSS_ENTROPY)
        return run_loss(r);
    if (p->op == FLP_RANDOM_LINEAR || p->forward)
        status = run_forward(r);
    return status == FLP_OK && p->op == FLP_RANDOM_LINEAR_BACKWARD ? run_backward(r) : status;
}

/* An execution tells the number of bad targets and the first one's row, once. */
static int check_target_errors(const run *r)
{
    int64_t count = -1, first = -1;

    if (!r->plan)
        return 1;
    if (flp_plan_target_errors(r->plan, &count, &first) != FLP_OK)
        return fail(r, "flp_plan_target_errors");
    if (count == r->linear->bad_count && first == r->linear->bad_first)
        return 1;
    snprintf(r->message, r->bytes, "bad targets: got %" PRId64 ", the first in row %" PRId64 ", wanted %" PRId64 ", %" PRId64, count, first,
             r->linear->bad_count, r->linear->bad_first);
    return 0;
}

static int is_all_nan(const flp_random_memory *memory, flp_random_role role, int dtype)
{
    const flp_random_buffer *buffer = &memory->buffer[role];

    for (int64_t i = 0; i < buffer->rows; i++)
        for (int64_t j = 0; j < buffer->columns; j++)
            if (!isnan(flp_reference_decode((flp_dtype)dtype, flp_random_memory_at(memory, role), i * buffer->stride + j)))
                return 0;
    return 1;
}

/* A second backward finds nothing that a forward left: the CPU path refuses, on others every gradient is NaN and counted. */
static int run_again(const run *r)
{
    const flp_random_problem *p = r->linear->problem;
    const flp_random_memory *memory = &r->linear->memory;
    int64_t unmatched = -1;
    flp_status status;

    if (r->machine->watch_no_lives)
        r->machine->watch_no_lives(r->machine, memory);
    status = run_backward(r);
    if (!r->machine->fetch(r->machine, &r->linear->memory, r->message, r->bytes))
        return 0;
    snprintf(r->message, r->bytes, "a second backward: status %d", (int)status);
    if (r->machine->is_cpu)
        return status == FLP_BAD_ARGUMENT;
    if (status != FLP_OK || flp_plan_unmatched_backwards(r->plan, &unmatched) != FLP_OK || unmatched != 1)
        return 0;
    snprintf(r->message, r->bytes, "a second backward: not every gradient is NaN");
    return is_all_nan(memory, FLP_RANDOM_GRAD_HIDDEN, p->grad_hidden) && is_all_nan(memory, FLP_RANDOM_GRAD_WEIGHT, p->grad_weight) &&
           is_all_nan(memory, FLP_RANDOM_GRAD_BIAS, p->grad_bias) && flp_random_memory_check(memory, r->message, r->bytes);
}

static int execute(const run *r)
{
    flp_random_memory *memory = &r->linear->memory;
    flp_status status;
    int done;

    if (!r->machine->place(r->machine, memory, r->message, r->bytes))
        return 0;
    status = run_once(r);
    snprintf(r->message, r->bytes, "%s", flp_error_message());
    done = r->machine->fetch(r->machine, memory, r->message, r->bytes) && status == FLP_OK;
    done = done && flp_random_linear_check(r->linear, r->machine, r->message, r->bytes) && check_target_errors(r);
    done = done && (!r->linear->problem->again || run_again(r));
    r->machine->release(r->machine, memory);
    return done;
}

/* The plan's own workspace, poisoned. The workspace of all the plan's rows keeps to the budget. */
static int make_workspace(const run *r)
{
    const flp_random_problem *p = r->linear->problem;
    const int64_t budget = r->linear->asked.backward.memory_budget, all = flp_plan_workspace_bytes(r->plan, p->n + p->spare);
    const int64_t bytes = flp_plan_workspace_bytes(r->plan, p->n);

    if (bytes < 0 || all < 0) {
        snprintf(r->message, r->bytes, "workspace: %" PRId64 " bytes", bytes);
        return 0;
    }
    if (budget > 0 && all > budget) {
        snprintf(r->message, r->bytes, "workspace: %" PRId64 " bytes, which are more than the budget of %" PRId64, all, budget);
        return 0;
    }
    if (p->shared_scratch)
        return 1;
    flp_random_memory_add_workspace(&r->linear->memory, bytes, flp_random_poison(p));
    return 1;
}

/* Shards run by dispatch, and the first one's plan answers for them: the cutting is the problem's. */
static void answer(const run *r)
{
    flp_plan *of_shard = r->linear->problem->shards ? flp_random_linear_first_shard(r->linear, r->machine) : NULL;
    const flp_plan *plan = of_shard ? of_shard : r->plan;

    if (plan)
        flp_random_answered(plan, &r->linear->memory);
    flp_plan_destroy(of_shard);
}

static int run_linear(void *state, const flp_random_machine *machine, char *message, size_t bytes)
{
    run r = { .linear = state, .machine = machine, .message = message, .bytes = bytes };
    const flp_random_problem *p = r.linear->problem;
    int done = 1;

    if (flp_token_loss_define(machine->context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss) != FLP_OK)
        return fail(&r, "flp_token_loss_define");
    choose_budget(&r);
    if (!p->dispatched && create_plan(&r) != FLP_OK)
        return fail(&r, "plan");
    flp_random_memory_restore(&r.linear->memory);
    if (p->shards)
        flp_random_linear_add_partials(r.linear);
    done = p->dispatched || make_workspace(&r);
    for (int i = 0; done && i <= p->repeat; i++) {
        machine->begin(machine, (uint64_t)(p->data + i));
        done = execute(&r);
        if (done && i < p->repeat)
            flp_random_memory_restore(&r.linear->memory);
    }
    if (done && flp_random_answered)
        answer(&r);
    flp_random_memory_remove(&r.linear->memory, FLP_RANDOM_WORKSPACE);
    flp_plan_destroy(r.plan);
    return done;
}

static void warm(void *state, const flp_random_machine *machine)
{
    run r = { .linear = state, .machine = machine };

    if (flp_token_loss_define(machine->context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss) != FLP_OK)
        return;
    choose_budget(&r);
    if (create_plan(&r) == FLP_OK)
        flp_plan_destroy(r.plan);
}

const flp_random_family flp_random_linear_family = { make, warm, run_linear, free_linear };
