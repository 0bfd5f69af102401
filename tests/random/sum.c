/* weighted_sum and its backward in the random tester.
 *
 * A sum whose longest way from a product to the result has `depth` additions may be off by u (DEVIATIONS sqrt(depth / 3) + 2) of the larger of itself and
 * the root of the sum of its terms' squares: partial sums wander no further, and each addition rounds with a deviation of u / sqrt(3). The forward's depth
 * is a sixteenth of D and the halvings behind, grad_w's the rows of a tile and the tiles. grad_x is one product, rounded to fp32 and to its dtype. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random/inputs.h"
#include "random/judge.h"
#include "random/suite.h"
#include "reference.h"
#include "base/dtype.h"

static const double u = 0x1p-24, deviations = 6;

typedef struct {
    const flp_random_problem *problem;
    flp_weighted_sum_backward_problem asked; /* its forward is weighted_sum's */
    flp_random_memory memory;
} random_sum;

static int is_backward(const flp_random_problem *p)
{
    return p->op == FLP_RANDOM_SUM_BACKWARD;
}

static flp_dtype either(int dtype, int otherwise)
{
    return (flp_dtype)(dtype ? dtype : otherwise);
}

static void ask(random_sum *sum)
{
    const flp_random_problem *p = sum->problem;

    sum->asked.forward = (flp_weighted_sum_problem){ .dtype = (flp_dtype)p->dtype,
                                                     .rows = p->n + p->spare,
                                                     .columns = p->d,
                                                     .x_stride = p->d + p->hidden_gap,
                                                     .pointer_alignment = p->misalignment & -p->misalignment,
                                                     .w_dtype = either(p->w_dtype, p->dtype),
                                                     .y_dtype = either(p->y_dtype, p->dtype),
                                                     .backend = p->portable ? FLP_BACKEND_PORTABLE : FLP_BACKEND_AUTO };
    sum->asked.grad_x = (flp_dtype)p->grad_hidden;
    sum->asked.grad_w = (flp_dtype)p->grad_weight;
    sum->asked.grad_x_stride = p->grad_hidden ? p->d + p->grad_hidden_gap : 0;
    sum->asked.accumulate = p->accumulate;
}

/* ---- inputs ---- */

static void fill(const random_sum *sum, flp_random_role role, int dtype, int64_t rows, int64_t columns, int64_t stride)
{
    const flp_random_problem *p = sum->problem;
    flp_random_numbers numbers = flp_random_stream(p, role);

    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < columns; d++)
            flp_random_encode(dtype, p->values == FLP_RANDOM_INTEGERS ? (double)flp_random_numbers_below(&numbers, 5) - 2 : flp_random_numbers_normal(&numbers),
                              flp_random_memory_at(&sum->memory, role), i * stride + d);
}

static void break_rows(const random_sum *sum)
{
    const flp_random_problem *p = sum->problem;
    flp_random_numbers numbers = flp_random_stream(p, FLP_RANDOM_ROLES);

    for (int64_t i = 0; i < p->n; i++) {
        const int64_t place = flp_random_numbers_below(&numbers, p->d);
        const double value = flp_random_numbers_chance(&numbers, 50) ? INFINITY : NAN;
        if (flp_random_numbers_chance(&numbers, p->broken))
            flp_random_encode(p->dtype, value, flp_random_memory_at(&sum->memory, FLP_RANDOM_HIDDEN), i * sum->asked.forward.x_stride + place);
    }
}

static void fill_g(const random_sum *sum)
{
    const flp_random_problem *p = sum->problem;
    flp_random_numbers numbers = flp_random_stream(p, FLP_RANDOM_G_LOGP);

    for (int64_t i = 0; i < p->n; i++)
        flp_random_encode(sum->asked.forward.y_dtype, flp_random_upstream_value(p, FLP_RANDOM_G_LOGP, i, p->n, &numbers),
                          flp_random_memory_at(&sum->memory, FLP_RANDOM_G_LOGP), i);
}

static void make_gradients(random_sum *sum)
{
    const flp_random_problem *p = sum->problem;
    const int fill_byte = flp_random_poison(p);

    flp_random_memory_add(&sum->memory, FLP_RANDOM_G_LOGP, p->n * flp_dtype_bytes(sum->asked.forward.y_dtype), 0, FLP_RANDOM_INPUT_FILL);
    fill_g(sum);
    if (p->grad_hidden && !p->in_place)
        flp_random_memory_add_output(&sum->memory, FLP_RANDOM_GRAD_HIDDEN, p->n, p->d, sum->asked.grad_x_stride, flp_dtype_bytes(p->grad_hidden),
                                     p->misalignment, fill_byte);
    if (p->grad_weight)
        flp_random_memory_add_output(&sum->memory, FLP_RANDOM_GRAD_WEIGHT, 1, p->d, p->d, flp_dtype_bytes(p->grad_weight), 0, fill_byte);
    if (p->accumulate)
        fill(sum, FLP_RANDOM_GRAD_WEIGHT, p->grad_weight, 1, p->d, p->d);
}

/* In place, x is an output. */
static void make_x(random_sum *sum)
{
    const flp_random_problem *p = sum->problem;
    const int64_t stride = sum->asked.forward.x_stride;
    flp_random_buffer *x = &sum->memory.buffer[FLP_RANDOM_HIDDEN];

    flp_random_memory_add_output(&sum->memory, FLP_RANDOM_HIDDEN, p->n, p->d, stride, flp_dtype_bytes(p->dtype), p->misalignment, FLP_RANDOM_INPUT_FILL);
    if (!p->in_place)
        x->rows = x->columns = 0;
    fill(sum, FLP_RANDOM_HIDDEN, p->dtype, p->n, p->d, stride);
    break_rows(sum);
}

static void *make(const flp_random_problem *problem)
{
    random_sum *sum = calloc(1, sizeof(*sum));

    if (!sum)
        abort();
    sum->problem = problem;
    ask(sum);
    make_x(sum);
    flp_random_memory_add(&sum->memory, FLP_RANDOM_WEIGHT, problem->d * flp_dtype_bytes(sum->asked.forward.w_dtype), 0, FLP_RANDOM_INPUT_FILL);
    fill(sum, FLP_RANDOM_WEIGHT, sum->asked.forward.w_dtype, 1, problem->d, problem->d);
    if (is_backward(problem))
        make_gradients(sum);
    else
        flp_random_memory_add_output(&sum->memory, FLP_RANDOM_Y, 1, problem->n, problem->n, flp_dtype_bytes(sum->asked.forward.y_dtype), 0,
                                     flp_random_poison(problem));
    flp_random_memory_seal(&sum->memory);
    return sum;
}

static void free_sum(void *state)
{
    random_sum *sum = state;

    flp_random_memory_free(&sum->memory);
    free(sum);
}

/* ---- what is right ---- */

typedef struct {
    double value, squares;
} total;

static void add(total *to, double term)
{
    to->value += term;
    to->squares += term * term;
}

/* What an input held before anything ran; what an output holds now. */
static double before(const random_sum *sum, flp_random_role role, int dtype, int64_t at)
{
    return flp_reference_decode((flp_dtype)dtype, sum->memory.buffer[role].before + sum->memory.buffer[role].offset, at);
}

static double now(const random_sum *sum, flp_random_role role, int dtype, int64_t at)
{
    return flp_reference_decode((flp_dtype)dtype, flp_random_memory_at(&sum->memory, role), at);
}

static double bound_of(const total *of, double depth)
{
    return u * (deviations * sqrt(depth / 3) + 2) * fmax(fabs(of->value), sqrt(of->squares));
}

static int reject(const char *name, int64_t at, double got, double want, double bound, char *message, size_t bytes)
{
    snprintf(message, bytes, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g", name, at, got, want, bound);
    return 0;
}

static int check_y(const random_sum *sum, char *message, size_t bytes)
{
    const flp_weighted_sum_problem *f = &sum->asked.forward;

    for (int64_t i = 0; i < sum->problem->n; i++) {
        total want = { 0 };
        for (int64_t d = 0; d < f->columns; d++)
            add(&want, before(sum, FLP_RANDOM_HIDDEN, f->dtype, i * f->x_stride + d) * before(sum, FLP_RANDOM_WEIGHT, f->w_dtype, d));
        const double got = now(sum, FLP_RANDOM_Y, f->y_dtype, i), bound = isfinite(want.value) ? bound_of(&want, (double)f->columns / 16 + 16) : 0;
        if (!flp_random_is_right(f->y_dtype == FLP_F32 ? "y" : "y, 16 bits", f->y_dtype, got, want.value, bound))
            return reject("y", i, got, want.value, bound, message, bytes);
    }
    return 1;
}

static int check_grad_w(const random_sum *sum, char *message, size_t bytes)
{
    const flp_weighted_sum_problem *f = &sum->asked.forward;
    const int dtype = sum->asked.grad_w;

    for (int64_t d = 0; dtype && d < f->columns; d++) {
        total want = { 0 };
        for (int64_t i = 0; i < sum->problem->n; i++)
            add(&want, before(sum, FLP_RANDOM_G_LOGP, f->y_dtype, i) * before(sum, FLP_RANDOM_HIDDEN, f->dtype, i * f->x_stride + d));
        if (sum->asked.accumulate)
            add(&want, before(sum, FLP_RANDOM_GRAD_WEIGHT, dtype, d));
        const double got = now(sum, FLP_RANDOM_GRAD_WEIGHT, dtype, d),
                     bound = isfinite(want.value) ? bound_of(&want, fmin((double)sum->problem->n, 64) + 16) : 0;
        if (!flp_random_is_right(dtype == FLP_F32 ? "grad_w" : "grad_w, 16 bits", dtype, got, want.value, bound))
            return reject("grad_w", d, got, want.value, bound, message, bytes);
    }
    return 1;
}

static int check_grad_x(const random_sum *sum, char *message, size_t bytes)
{
    const flp_weighted_sum_problem *f = &sum->asked.forward;
    const flp_random_role role = sum->problem->in_place ? FLP_RANDOM_HIDDEN : FLP_RANDOM_GRAD_HIDDEN;
    const int dtype = sum->asked.grad_x;

    for (int64_t i = 0; dtype && i < sum->problem->n; i++)
        for (int64_t d = 0; d < f->columns; d++) {
            const double product = before(sum, FLP_RANDOM_G_LOGP, f->y_dtype, i) * before(sum, FLP_RANDOM_WEIGHT, f->w_dtype, d);
            const double want = flp_random_round(dtype, flp_random_round(FLP_F32, product)), got = now(sum, role, dtype, i * sum->asked.grad_x_stride + d);
            if (got != want && !(isnan(got) && isnan(want)))
                return reject("grad_x", i * f->columns + d, got, want, 0, message, bytes);
        }
    return 1;
}

/* ---- execution ---- */

static flp_status execute(const random_sum *sum, const flp_random_machine *machine, flp_plan *plan)
{
#define AT(role) flp_random_machine_at(machine, &sum->memory, role)
    const flp_random_problem *p = sum->problem;
    const flp_weighted_sum_args forward = { .rows = p->n, .x = AT(FLP_RANDOM_HIDDEN), .w = AT(FLP_RANDOM_WEIGHT), .y = AT(FLP_RANDOM_Y) };
    const flp_weighted_sum_backward_args backward = { .rows = p->n,
                                                      .g = AT(FLP_RANDOM_G_LOGP),
                                                      .x = sum->asked.grad_w ? AT(FLP_RANDOM_HIDDEN) : NULL,
                                                      .w = sum->asked.grad_x ? AT(FLP_RANDOM_WEIGHT) : NULL,
                                                      .grad_x = AT(p->in_place ? FLP_RANDOM_HIDDEN : FLP_RANDOM_GRAD_HIDDEN),
                                                      .grad_w = AT(FLP_RANDOM_GRAD_WEIGHT),
                                                      .workspace = AT(FLP_RANDOM_WORKSPACE),
                                                      .workspace_bytes = sum->memory.buffer[FLP_RANDOM_WORKSPACE].data_bytes };
#undef AT

    if (is_backward(p))
        return plan ? flp_weighted_sum_backward_execute(plan, &backward) : flp_weighted_sum_backward(machine->context, &sum->asked, &backward);
    return plan ? flp_weighted_sum_execute(plan, &forward) : flp_weighted_sum(machine->context, &sum->asked.forward, &forward);
}

static int run_once(random_sum *sum, const flp_random_machine *machine, flp_plan *plan, char *message, size_t bytes)
{
    flp_status status;
    int done;

    if (!machine->place(machine, &sum->memory, message, bytes))
        return 0;
    status = execute(sum, machine, plan);
    snprintf(message, bytes, "%s", flp_error_message());
    done = machine->fetch(machine, &sum->memory, message, bytes) && status == FLP_OK && flp_random_memory_check(&sum->memory, message, bytes);
    if (done)
        done = is_backward(sum->problem) ? check_grad_x(sum, message, bytes) && check_grad_w(sum, message, bytes) : check_y(sum, message, bytes);
    machine->release(machine, &sum->memory);
    return done;
}

static flp_status create_plan(const random_sum *sum, const flp_random_machine *machine, flp_plan **plan)
{
    return is_backward(sum->problem) ? flp_weighted_sum_backward_plan_create(machine->context, &sum->asked, plan)
                                     : flp_weighted_sum_plan_create(machine->context, &sum->asked.forward, plan);
}

static int run_sum(void *state, const flp_random_machine *machine, char *message, size_t bytes)
{
    random_sum *sum = state;
    const flp_random_problem *p = sum->problem;
    flp_plan *plan = NULL;
    flp_status status = FLP_OK;
    int done;

    if (!p->dispatched)
        status = create_plan(sum, machine, &plan);
    if (status != FLP_OK) {
        snprintf(message, bytes, "plan: %s", flp_error_message());
        return 0;
    }
    flp_random_memory_restore(&sum->memory);
    if (plan && is_backward(p) && !p->shared_scratch)
        flp_random_memory_add_workspace(&sum->memory, flp_plan_workspace_bytes(plan, p->n), flp_random_poison(p));
    done = 1;
    for (int i = 0; done && i <= p->repeat; i++) {
        machine->begin(machine, (uint64_t)(p->data + i));
        done = run_once(sum, machine, plan, message, bytes);
        if (done && i < p->repeat)
            flp_random_memory_restore(&sum->memory);
    }
    if (done && plan && flp_random_answered)
        flp_random_answered(plan, &sum->memory);
    flp_random_memory_remove(&sum->memory, FLP_RANDOM_WORKSPACE);
    flp_plan_destroy(plan);
    return done;
}

static void warm(void *state, const flp_random_machine *machine)
{
    flp_plan *plan = NULL;

    if (create_plan(state, machine, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

const flp_random_family flp_random_sum_family = { make, warm, run_sum, free_sum };
