/* linear_cross_entropy on the host device: the cases of tests/cross_entropy_cases.h. */
#include "host/host_linear_cross_entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host_suite.h"

void (*flp_host_linear_cross_entropy_planned)(flp_plan *plan);

static flp_cross_entropy_case *cases;
static char (*names)[128];
static int case_count;

/* By name, not by size: a case that is too large by mistake then takes long here, and is not left out in silence. */
static int is_left_out(const flp_cross_entropy_case *c)
{
    return strcmp(c->gradient.name, "seed case") == 0 || strcmp(c->gradient.name, "seed case, sum") == 0;
}

#define LIKELY(nats) .values = FLP_CASE_INTEGERS, .rows = FLP_CASE_EQUAL_TARGETS, .margin = nats
#define ALL_F32 .grad_hidden = FLP_F32, .grad_weight = FLP_F32

/* More cases for the kernels alone: likely targets, with and without saved exponentials. */
static const flp_cross_entropy_case kernels_own[] = {
    { .gradient = { .name = "likely targets, f32",
                    .problem = { ALL_F32 },
                    .forward = { LIKELY(40), .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
      .problem.reduction = FLP_REDUCE_NONE,
      .outputs = 1 },
    { .gradient = { .name = "saved exponentials, likely targets",
                    .problem = { ALL_F32, .memory_budget = 1 << 24 },
                    .forward = { LIKELY(80), .problem = { .dtype = FLP_BF16, .rows = 45, .hidden = 8, .vocab = 300 } } },
      .problem.reduction = FLP_REDUCE_NONE,
      .outputs = 1 },
    { .gradient = { .name = "smoothing, likely targets",
                    .problem = { ALL_F32 },
                    .forward = { LIKELY(20), .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
      .problem = { .reduction = FLP_REDUCE_NONE, .label_smoothing = 1 },
      .label_smoothing = 0.1 },
};
enum { KERNELS_OWN = sizeof(kernels_own) / sizeof(*kernels_own) };

static void get(int index, flp_cross_entropy_case *c)
{
    const int shared = flp_cross_entropy_case_count();

    if (index < shared) {
        flp_cross_entropy_case_get(index, c);
        return;
    }
    *c = kernels_own[index - shared];
    flp_cross_entropy_case_complete(index, c);
}

static int count(void)
{
    const int all = flp_cross_entropy_case_count() + KERNELS_OWN;

    if (cases)
        return case_count;
    cases = calloc((size_t)all, sizeof(*cases));
    names = calloc((size_t)all, sizeof(*names));
    if (!cases || !names)
        abort();
    for (int i = 0; i < all; i++) {
        get(i, &cases[case_count]);
        snprintf(names[case_count], sizeof(names[0]), "cross-entropy: %s", cases[case_count].gradient.name);
        case_count += !is_left_out(&cases[case_count]);
    }
    return case_count;
}

static const char *name(int index)
{
    return names[index];
}

static flp_status make_plan(flp_context *context, const flp_cross_entropy_case *c, flp_plan **plan)
{
    flp_status status = flp_token_loss_define(context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss);

    *plan = NULL;
    return status == FLP_OK ? flp_linear_cross_entropy_plan_create(context, &c->problem, plan) : status;
}

static void compile(flp_context *context, int index)
{
    flp_plan *plan;

    if (make_plan(context, &cases[index], &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

static void list_buffers(const flp_cross_entropy_case_data *data, flp_host_memory *memory)
{
    for (int role = 0; role < FLP_CASE_BUFFERS; role++)
        flp_host_memory_add(memory, data->gradient.forward.buffer[role].base, data->gradient.forward.buffer[role].offset,
                            data->gradient.forward.buffer[role].data_bytes);
    for (int role = 0; role < FLP_GRADIENT_BUFFERS; role++)
        flp_host_memory_add(memory, data->gradient.own[role].base, data->gradient.own[role].offset, data->gradient.own[role].data_bytes);
    for (int role = 0; role < FLP_CROSS_ENTROPY_BUFFERS; role++)
        flp_host_memory_add(memory, data->own[role].base, data->own[role].offset, data->own[role].data_bytes);
}

static int execute(flp_context *context, const flp_cross_entropy_case *c, int64_t plan_rows, const flp_linear_cross_entropy_args *args,
                   const flp_reference *forward, char *message, size_t bytes)
{
    flp_cross_entropy_case planned = *c;
    flp_plan *plan;
    flp_status status;
    int done;

    planned.problem.backward.forward.rows = plan_rows;
    status = make_plan(context, &planned, &plan);
    if (status == FLP_OK && flp_host_linear_cross_entropy_planned)
        flp_host_linear_cross_entropy_planned(plan);
    if (status == FLP_OK)
        status = flp_linear_cross_entropy_execute(plan, args);
    done = flp_host_suite_succeeded(status, message, bytes) && flp_host_suite_check_target_errors(plan, forward->bad_count, forward->bad_first, message, bytes);
    flp_plan_destroy(plan);
    return done;
}

int flp_host_linear_cross_entropy_run(flp_context *context, const flp_cross_entropy_case *c, int64_t plan_rows, char *message, size_t bytes)
{
    flp_host_memory memory = { 0 };
    flp_cross_entropy_case_data data;
    flp_cross_entropy_case_call call;
    int done;

    if (!flp_cross_entropy_case_make_data(c, &data))
        abort();
    flp_cross_entropy_case_args(c, &data, NULL, NULL, NULL, &call);
    list_buffers(&data, &memory);
    done = execute(context, c, plan_rows, &call.args, &data.forward, message, bytes) &&
           flp_cross_entropy_case_check(c, &data, flp_gradient_gpu_roundoff(c->problem.backward.forward.dtype), message, bytes);
    flp_host_memory_remove(&memory);
    flp_cross_entropy_case_free_data(&data);
    return done;
}

static int run(flp_context *context, int index, char *message, size_t bytes)
{
    return flp_host_linear_cross_entropy_run(context, &cases[index], cases[index].problem.backward.forward.rows, message, bytes);
}

const flp_host_family flp_host_linear_cross_entropy = { count, name, compile, run };
