/* scale in the random tester: x is exactly the product, rounded to fp32 and to its dtype. A factor of 1 leaves x's bytes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "random/inputs.h"
#include "random/suite.h"
#include "reference.h"

/* Where x and the factor stand: x with the outputs. */
static const flp_random_role x_role = FLP_RANDOM_GRAD_HIDDEN, factor_role = FLP_RANDOM_G_LOSS;

typedef struct {
    const flp_random_problem *problem;
    flp_scale_problem asked;
    flp_random_memory memory;
} random_scale;

/* ---- inputs ---- */

static void fill_bits(flp_random_numbers *numbers, int bytes, unsigned char *x)
{
    const uint32_t bits = (uint32_t)(flp_random_numbers_next(numbers) >> 32);

    if (bytes == 2)
        memcpy(x, (const uint16_t[]){ (uint16_t)bits }, 2);
    else
        memcpy(x, &bits, 4);
}

static double draw_value(const flp_random_problem *p, flp_random_numbers *numbers)
{
    if (p->values == FLP_RANDOM_ZEROS)
        return flp_random_numbers_chance(numbers, 50) ? 0 : -0.0;
    return p->values == FLP_RANDOM_INTEGERS ? (double)flp_random_numbers_below(numbers, 5) - 2 : flp_random_numbers_normal(numbers);
}

static void fill_x(const random_scale *scale)
{
    const flp_random_problem *p = scale->problem;
    flp_random_numbers numbers = flp_random_stream(p, x_role);
    unsigned char *x = flp_random_memory_at(&scale->memory, x_role);
    const int bytes = flp_dtype_bytes(p->dtype);

    for (int64_t i = 0; i < p->n; i++)
        for (int64_t d = 0; d < p->d; d++) {
            const int64_t at = i * scale->asked.x_stride + d;
            if (p->values == FLP_RANDOM_BITS)
                fill_bits(&numbers, bytes, x + at * bytes);
            else
                flp_random_encode(p->dtype, draw_value(p, &numbers), x, at);
        }
}

static void *make(const flp_random_problem *problem)
{
    random_scale *scale = calloc(1, sizeof(*scale));
    const float factor = (float)problem->factor; /* which a settled problem has exactly */

    if (!scale)
        abort();
    scale->problem = problem;
    scale->asked = (flp_scale_problem){ .dtype = (flp_dtype)problem->dtype,
                                        .rows = problem->n + problem->spare,
                                        .columns = problem->d,
                                        .x_stride = problem->d + problem->hidden_gap,
                                        .pointer_alignment = problem->misalignment & -problem->misalignment,
                                        .backend = problem->portable ? FLP_BACKEND_PORTABLE : FLP_BACKEND_AUTO };
    flp_random_memory_add_output(&scale->memory, x_role, problem->n, problem->d, scale->asked.x_stride, flp_dtype_bytes(problem->dtype), problem->misalignment,
                                 FLP_RANDOM_INPUT_FILL);
    fill_x(scale);
    flp_random_memory_add(&scale->memory, factor_role, sizeof(factor), 0, FLP_RANDOM_INPUT_FILL);
    memcpy(flp_random_memory_at(&scale->memory, factor_role), &factor, sizeof(factor));
    flp_random_memory_seal(&scale->memory);
    return scale;
}

static void free_scale(void *state)
{
    random_scale *scale = state;

    flp_random_memory_free(&scale->memory);
    free(scale);
}

/* ---- what is right ---- */

static int is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static int check_products(const random_scale *scale, char *message, size_t bytes)
{
    const flp_random_problem *p = scale->problem;
    const flp_random_buffer *x = &scale->memory.buffer[x_role];

    for (int64_t i = 0; i < p->n; i++)
        for (int64_t d = 0; d < p->d; d++) {
            const int64_t at = i * scale->asked.x_stride + d;
            const double before = flp_reference_decode(scale->asked.dtype, x->before + x->offset, at),
                         want = flp_random_round(p->dtype, flp_random_round(FLP_F32, before * p->factor)),
                         got = flp_reference_decode(scale->asked.dtype, x->base + x->offset, at);
            if (is_same(got, want))
                continue;
            snprintf(message, bytes, "x[%" PRId64 "]: got %a, wanted %a, which is %a times the factor", i * p->d + d, got, want, before);
            return 0;
        }
    return 1;
}

static int check_x(const random_scale *scale, char *message, size_t bytes)
{
    const flp_random_buffer *x = &scale->memory.buffer[x_role];

    if (scale->problem->factor != 1)
        return check_products(scale, message, bytes);
    if (memcmp(x->base, x->before, x->bytes) == 0)
        return 1;
    snprintf(message, bytes, "x was changed, with a factor of 1");
    return 0;
}

/* ---- execution ---- */

static int run_once(random_scale *scale, const flp_random_machine *machine, flp_plan *plan, char *message, size_t bytes)
{
    flp_scale_args args = { .rows = scale->problem->n };
    flp_status status;
    int done;

    if (!machine->place(machine, &scale->memory, message, bytes))
        return 0;
    args.x = flp_random_machine_at(machine, &scale->memory, x_role);
    args.factor = flp_random_machine_at(machine, &scale->memory, factor_role);
    status = plan ? flp_scale_execute(plan, &args) : flp_scale(machine->context, &scale->asked, &args);
    snprintf(message, bytes, "%s", flp_error_message());
    done = machine->fetch(machine, &scale->memory, message, bytes) && status == FLP_OK && flp_random_memory_check(&scale->memory, message, bytes) &&
           check_x(scale, message, bytes);
    machine->release(machine, &scale->memory);
    return done;
}

static int run_scale(void *state, const flp_random_machine *machine, char *message, size_t bytes)
{
    random_scale *scale = state;
    const flp_random_problem *p = scale->problem;
    flp_plan *plan = NULL;
    int done = 1;

    if (!p->dispatched && flp_scale_plan_create(machine->context, &scale->asked, &plan) != FLP_OK) {
        snprintf(message, bytes, "plan: %s", flp_error_message());
        return 0;
    }
    for (int i = 0; done && i <= p->repeat; i++) {
        flp_random_memory_restore(&scale->memory);
        machine->begin(machine, (uint64_t)(p->data + i));
        done = run_once(scale, machine, plan, message, bytes);
    }
    if (done && plan && flp_random_answered)
        flp_random_answered(plan, &scale->memory);
    flp_plan_destroy(plan);
    return done;
}

static void warm(void *state, const flp_random_machine *machine)
{
    const random_scale *scale = state;
    flp_plan *plan = NULL;

    if (flp_scale_plan_create(machine->context, &scale->asked, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

const flp_random_family flp_random_scale_family = { make, warm, run_scale, free_scale };
