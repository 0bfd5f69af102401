/* Times finding the plan of a known problem, and calling it: with its launches, and without them, which leaves what the library and the driver do besides. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/console.h"
#include "core/dispatch.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_plan.h"
#include "start.h"
#include "statistics.h"

enum { BATCHES = 51, LOOKUPS = 20000, CALLS = 100, STEP_CALLS = 20, ROWS = 64 };

/* Small, so that no time is spent on waiting for the device. */
static const flp_linear_logp_problem small = { .dtype = FLP_BF16, .rows = ROWS, .hidden = 64, .vocab = 256 };

/* More problems than a thread's recent hits have room for. */
enum { MANY = 64 };

/* distinct: 1, or MANY to change the problem at each lookup. */
static flp_status time_lookups(flp_context *context, flp_backend backend, int distinct, double *nanoseconds)
{
    const flp_dispatch_call call = { .rows = ROWS, .addresses = 256 };
    flp_linear_logp_problem asked[MANY];
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status = FLP_OK;

    for (int i = 0; i < MANY; i++) {
        asked[i] = small;
        asked[i].vocab += i;
        asked[i].backend = backend;
    }
    for (int batch = -1; batch < BATCHES && status == FLP_OK; batch++) { /* the first is not counted: it makes the plans */
        double start = flp_clock_seconds();
        for (int i = 0; i < LOOKUPS && status == FLP_OK; i++)
            status = flp_dispatch_find(context, &flp_linear_logp_operator, &asked[i % distinct], &call, &cuda_context, &plan);
        if (batch >= 0)
            nanoseconds[batch] = (flp_clock_seconds() - start) * 1e9 / LOOKUPS;
    }
    return status;
}

static flp_status measure_lookups(flp_context *context, flp_backend backend, const char *last_hit, const char *table, json_t *result)
{
    for (int distinct = 1; distinct <= MANY; distinct += MANY - 1) {
        double nanoseconds[BATCHES];
        flp_status status = time_lookups(context, backend, distinct, nanoseconds);
        if (status != FLP_OK)
            return status;
        json_object_set_new(result, distinct == 1 ? last_hit : table, flp_statistics_pack(nanoseconds, BATCHES));
    }
    return FLP_OK;
}

/* A step of few rows, which has many launches. */
static const flp_linear_cross_entropy_problem step = {
    .backward = { .forward = { .dtype = FLP_BF16, .rows = 2 * ROWS, .hidden = 2048, .vocab = 131072 }, .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16 },
    .reduction = FLP_REDUCE_SUM
};

typedef struct {
    flp_status (*call)(flp_context *context, flp_plan *plan, const void *args); /* plan NULL: without one, if the function can */
    flp_context *context;
    flp_plan *plan;
    const void *args;
    int calls; /* in a batch: few enough that the driver's queue never fills */
} timed;

static flp_status call_small(flp_context *context, flp_plan *plan, const void *args)
{
    return plan ? flp_linear_logp_execute(plan, args) : flp_linear_logp(context, &small, args);
}

static flp_status call_step(flp_context *context, flp_plan *plan, const void *args)
{
    (void)context;
    return flp_linear_cross_entropy_execute(plan, args);
}

static flp_status time_calls(const flp_gpu *gpu, const timed *what, double *nanoseconds)
{
    flp_status status = FLP_OK;

    for (int batch = -1; batch < BATCHES && status == FLP_OK; batch++) {
        double start = flp_clock_seconds();
        for (int i = 0; i < what->calls && status == FLP_OK; i++)
            status = what->call(what->context, what->plan, what->args);
        if (batch >= 0)
            nanoseconds[batch] = (flp_clock_seconds() - start) * 1e9 / what->calls;
        if (status == FLP_OK)
            status = flp_gpu_synchronize(gpu);
    }
    return status;
}

static CUresult leave_launch_out(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                 unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared_bytes, (void)stream;
    (void)parameters, (void)extra;
    return CUDA_SUCCESS;
}

static CUresult leave_extended_launch_out(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    (void)config, (void)function, (void)parameters, (void)extra;
    return CUDA_SUCCESS;
}

/* Times what a call takes besides its launches: the same call with a driver that launches nothing and does all the rest. */
static flp_status time_without_launches(const flp_gpu *gpu, const timed *what, double *nanoseconds)
{
    const flp_driver whole = flp_driver_loaded;
    flp_status status;

    flp_driver_loaded.launch = leave_launch_out;
    if (whole.launch_extended)
        flp_driver_loaded.launch_extended = leave_extended_launch_out;
    status = time_calls(gpu, what, nanoseconds);
    flp_driver_loaded = whole;
    return status;
}

typedef flp_status time_way(const flp_gpu *gpu, const timed *what, double *nanoseconds);

static flp_status measure_way(const flp_gpu *gpu, const timed *what, time_way *way, const char *name, json_t *result)
{
    double nanoseconds[BATCHES];
    flp_status status = way(gpu, what, nanoseconds);

    if (status == FLP_OK)
        json_object_set_new(result, name, flp_statistics_pack(nanoseconds, BATCHES));
    return status;
}

/* name: of the figures, such as "execute". */
static flp_status measure_with_and_without(const flp_gpu *gpu, const timed *what, const char *name, json_t *result)
{
    char figure[64];
    flp_status status;

    snprintf(figure, sizeof(figure), "%s_ns", name);
    status = measure_way(gpu, what, time_calls, figure, result);
    snprintf(figure, sizeof(figure), "%s_over_launches_ns", name);
    return status == FLP_OK ? measure_way(gpu, what, time_without_launches, figure, result) : status;
}

/* Makes the arrays, which hold targets of 0 and small numbers. */
static flp_status make_arrays(flp_gpu *gpu, const size_t *bytes, int count, int target, CUdeviceptr *arrays)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < count && status == FLP_OK; i++) {
        status = flp_gpu_allocate(gpu, bytes[i], &arrays[i]);
        if (status == FLP_OK)
            status = flp_gpu_set(gpu, arrays[i], i == target ? 0 : 0x3c, bytes[i]);
    }
    return status;
}

static flp_status measure_calls(flp_gpu *gpu, flp_context *context, json_t *result)
{
    const size_t bytes[] = { ROWS * 64 * 2, 256 * 64 * 2, ROWS * 8, ROWS * 4 };
    CUdeviceptr arrays[4];
    flp_plan *plan = NULL;
    flp_status status = flp_linear_logp_plan_create(context, &small, &plan);

    if (status == FLP_OK)
        status = make_arrays(gpu, bytes, 4, 2, arrays);
    if (status == FLP_OK) {
        const flp_linear_logp_args args = { .rows = ROWS,
                                            .hidden = flp_gpu_pointer(arrays[0]),
                                            .weight = flp_gpu_pointer(arrays[1]),
                                            .target = flp_gpu_pointer(arrays[2]),
                                            .ignore_index = -100,
                                            .flags = FLP_IGNORE_INDEX,
                                            .logp = flp_gpu_pointer(arrays[3]) };
        status = measure_with_and_without(gpu, &(timed){ call_small, context, NULL, &args, CALLS }, "call", result);
        if (status == FLP_OK)
            status = measure_with_and_without(gpu, &(timed){ call_small, context, plan, &args, CALLS }, "execute", result);
    }
    flp_gpu_free_all(gpu);
    flp_plan_destroy(plan);
    return status;
}

static flp_status measure_steps(flp_gpu *gpu, flp_context *context, json_t *result)
{
    const flp_linear_logp_problem *forward = &step.backward.forward;
    const size_t rows = (size_t)forward->rows, hidden_bytes = rows * (size_t)forward->hidden * 2, weight_bytes = (size_t)(forward->vocab * forward->hidden) * 2;
    const size_t bytes[] = { hidden_bytes, weight_bytes, rows * 8, 4, hidden_bytes, weight_bytes };
    CUdeviceptr arrays[6];
    flp_plan *plan = NULL;
    flp_status status = flp_linear_cross_entropy_plan_create(context, &step, &plan);

    if (status == FLP_OK)
        status = make_arrays(gpu, bytes, 6, 2, arrays);
    if (status == FLP_OK) {
        const flp_linear_cross_entropy_args args = { .rows = forward->rows,
                                                     .hidden = flp_gpu_pointer(arrays[0]),
                                                     .weight = flp_gpu_pointer(arrays[1]),
                                                     .target = flp_gpu_pointer(arrays[2]),
                                                     .ignore_index = -100,
                                                     .flags = FLP_IGNORE_INDEX,
                                                     .loss = flp_gpu_pointer(arrays[3]),
                                                     .grad_hidden = flp_gpu_pointer(arrays[4]),
                                                     .grad_weight = flp_gpu_pointer(arrays[5]) };
        status = measure_with_and_without(gpu, &(timed){ call_step, context, plan, &args, STEP_CALLS }, "step_execute", result);
    }
    flp_gpu_free_all(gpu);
    flp_plan_destroy(plan);
    return status;
}

flp_status flp_start_measure_dispatch(flp_gpu *gpu, json_t **result)
{
    flp_context *context;
    flp_status status = flp_context_create(NULL, &context);

    if (status != FLP_OK)
        return status;
    *result = json_object();
    status = measure_lookups(context, FLP_BACKEND_CPU, "cpu_last_hit_ns", "cpu_table_ns", *result);
    if (status == FLP_OK && gpu)
        status = measure_lookups(context, FLP_BACKEND_AUTO, "last_hit_ns", "table_ns", *result);
    if (status == FLP_OK && gpu)
        status = measure_calls(gpu, context, *result);
    if (status == FLP_OK && gpu)
        status = measure_steps(gpu, context, *result);
    flp_context_destroy(context);
    if (status != FLP_OK) {
        json_decref(*result);
        *result = NULL;
    }
    return status;
}
