/* Finding a known problem, and calling it. */
#include <stdlib.h>

#include "base/status.h"
#include "cli/console.h"
#include "core/dispatch.h"
#include "operators/linear/linear_logp_plan.h"
#include "start.h"
#include "statistics.h"

enum { BATCHES = 51, LOOKUPS = 20000, CALLS = 100, ROWS = 64 };

/* Small, so that the device is not what is waited for. */
static const flp_linear_logp_problem small = { .dtype = FLP_BF16, .rows = ROWS, .hidden = 64, .vocab = 256 };

/* More problems in turn than a thread's recent hits have room for. */
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
        double start = flp_console_seconds();
        for (int i = 0; i < LOOKUPS && status == FLP_OK; i++)
            status = flp_dispatch_find(context, &flp_linear_logp_operator, &asked[i % distinct], &call, &cuda_context, &plan);
        if (batch >= 0)
            nanoseconds[batch] = (flp_console_seconds() - start) * 1e9 / LOOKUPS;
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

/* Few enough launches a batch that the driver's queue never fills. */
static flp_status time_calls(const flp_gpu *gpu, flp_context *context, const flp_linear_logp_args *args, double *nanoseconds)
{
    flp_status status = FLP_OK;

    for (int batch = -1; batch < BATCHES && status == FLP_OK; batch++) {
        double start = flp_console_seconds();
        for (int i = 0; i < CALLS && status == FLP_OK; i++)
            status = flp_linear_logp(context, &small, args);
        if (batch >= 0)
            nanoseconds[batch] = (flp_console_seconds() - start) * 1e9 / CALLS;
        if (status == FLP_OK)
            status = flp_gpu_synchronize(gpu);
    }
    return status;
}

static flp_status measure_calls(flp_gpu *gpu, flp_context *context, json_t *result)
{
    const size_t bytes[] = { ROWS * 64 * 2, 256 * 64 * 2, ROWS * 8, ROWS * 4 };
    CUdeviceptr buffers[4];
    double nanoseconds[BATCHES];
    flp_linear_logp_args args;
    flp_status status = FLP_OK;

    for (int i = 0; i < 4 && status == FLP_OK; i++) {
        status = flp_gpu_allocate(gpu, bytes[i], &buffers[i]);
        if (status == FLP_OK)
            status = flp_gpu_set(gpu, buffers[i], i == 2 ? 0 : 0x3c, bytes[i]); /* targets 0; small numbers */
    }
    if (status != FLP_OK)
        return status;
    args = (flp_linear_logp_args){ .rows = ROWS,
                                   .hidden = flp_gpu_pointer(buffers[0]),
                                   .weight = flp_gpu_pointer(buffers[1]),
                                   .target = flp_gpu_pointer(buffers[2]),
                                   .ignore_index = -100,
                                   .flags = FLP_IGNORE_INDEX,
                                   .logp = flp_gpu_pointer(buffers[3]) };
    status = time_calls(gpu, context, &args, nanoseconds);
    flp_gpu_free_all(gpu);
    if (status != FLP_OK)
        return status;
    json_object_set_new(result, "call_ns", flp_statistics_pack(nanoseconds, BATCHES));
    return FLP_OK;
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
