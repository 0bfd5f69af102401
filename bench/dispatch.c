/* Times finding the plan of a known problem, and calling it: with its launches, and without them, which leaves what the library and the driver do besides. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/console.h"
#include "core/dispatch.h"
#include "operators/linear/linear_logp_plan.h"
#include "start.h"
#include "statistics.h"

enum { BATCHES = 51, LOOKUPS = 20000, CALLS = 100, ROWS = 64 };

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

typedef struct {
    flp_context *context;
    flp_plan *plan; /* NULL: calls without one */
    const flp_linear_logp_args *args;
} timed;

static flp_status call_once(const timed *what)
{
    return what->plan ? flp_linear_logp_execute(what->plan, what->args) : flp_linear_logp(what->context, &small, what->args);
}

/* A batch has few enough launches that the driver's queue never fills. */
static flp_status time_calls(const flp_gpu *gpu, const timed *what, double *nanoseconds)
{
    flp_status status = FLP_OK;

    for (int batch = -1; batch < BATCHES && status == FLP_OK; batch++) {
        double start = flp_clock_seconds();
        for (int i = 0; i < CALLS && status == FLP_OK; i++)
            status = call_once(what);
        if (batch >= 0)
            nanoseconds[batch] = (flp_clock_seconds() - start) * 1e9 / CALLS;
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

static flp_status measure_ways(const flp_gpu *gpu, const timed *planned, json_t *result)
{
    const timed unplanned = { planned->context, NULL, planned->args };
    flp_status status = measure_way(gpu, &unplanned, time_calls, "call_ns", result);

    if (status == FLP_OK)
        status = measure_way(gpu, planned, time_calls, "execute_ns", result);
    if (status == FLP_OK)
        status = measure_way(gpu, &unplanned, time_without_launches, "call_over_launches_ns", result);
    return status == FLP_OK ? measure_way(gpu, planned, time_without_launches, "execute_over_launches_ns", result) : status;
}

static flp_status measure_calls(flp_gpu *gpu, flp_context *context, json_t *result)
{
    const size_t bytes[] = { ROWS * 64 * 2, 256 * 64 * 2, ROWS * 8, ROWS * 4 };
    CUdeviceptr buffers[4];
    flp_linear_logp_args args;
    flp_plan *plan = NULL;
    flp_status status = flp_linear_logp_plan_create(context, &small, &plan);

    for (int i = 0; i < 4 && status == FLP_OK; i++) {
        status = flp_gpu_allocate(gpu, bytes[i], &buffers[i]);
        if (status == FLP_OK)
            status = flp_gpu_set(gpu, buffers[i], i == 2 ? 0 : 0x3c, bytes[i]); /* targets 0; small numbers */
    }
    if (status == FLP_OK) {
        args = (flp_linear_logp_args){ .rows = ROWS,
                                       .hidden = flp_gpu_pointer(buffers[0]),
                                       .weight = flp_gpu_pointer(buffers[1]),
                                       .target = flp_gpu_pointer(buffers[2]),
                                       .ignore_index = -100,
                                       .flags = FLP_IGNORE_INDEX,
                                       .logp = flp_gpu_pointer(buffers[3]) };
        status = measure_ways(gpu, &(timed){ context, plan, &args }, result);
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
    flp_context_destroy(context);
    if (status != FLP_OK) {
        json_decref(*result);
        *result = NULL;
    }
    return status;
}
