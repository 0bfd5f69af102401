/* Runs fusedlogp score: chooses the device, makes one plan, executes it on chunks of rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/dtype.h"
#include "base/status.h"
#include "cli/console.h"
#include "cli/score_gpu.h"
#include "core/plan.h"

/* Small enough for a progress line that moves, large enough to keep all threads busy. */
#define CPU_CHUNK_ROWS 4096

typedef struct {
    flp_context *context;
    flp_plan *plan;
    flp_score_gpu gpu; /* closed on the CPU path */
    void *converted;   /* a chunk of hidden in the weight's dtype; NULL: it has that already */
    int64_t rounded;   /* how many values of hidden the conversion has rounded so far */
} session;

static void copy_device(const flp_plan *plan, char *device, size_t bytes)
{
    flp_text text = { 0 };
    flp_describe_device(plan, &text);
    snprintf(device, bytes, "%s", text.failed ? "" : text.data);
    flp_text_free(&text);
}

static flp_status allocate_results(const flp_score_options *options, int64_t rows, flp_score_result *result)
{
    size_t words = rows > 0 ? (size_t)rows : 1;
    result->logp = calloc(words, sizeof *result->logp);
    if (options->lse)
        result->lse = calloc(words, sizeof *result->lse);
    if (options->entropy)
        result->entropy = calloc(words, sizeof *result->entropy);
    if (options->argmax)
        result->argmax = calloc(words, sizeof *result->argmax);
    if (result->logp && (result->lse || !options->lse) && (result->entropy || !options->entropy) && (result->argmax || !options->argmax))
        return FLP_OK;
    return flp_status_fail(FLP_OUT_OF_MEMORY, "results of %" PRId64 " rows", rows);
}

/* The largest power of two up to 16 that every hidden row of every chunk and the weight are aligned to. */
static int host_alignment(const flp_score_inputs *inputs)
{
    uintptr_t row_bytes = (uintptr_t)inputs->problem.hidden * (uintptr_t)flp_dtype_bytes(inputs->problem.dtype);
    uintptr_t bits = (uintptr_t)inputs->hidden.data | (uintptr_t)inputs->weight.data | row_bytes | 16;
    return (int)(bits & -bits);
}

/* Opens the GPU for every backend but cpu. Without a driver, --backend auto goes on on the CPU and says so in the reason of the path; the others fail. */
static flp_status open_device(const flp_score_options *options, session *now)
{
    const flp_driver *driver;
    if (options->backend == FLP_BACKEND_CPU)
        return FLP_OK;
    flp_status status = flp_driver_get(&driver);
    if (status == FLP_NO_DRIVER && options->backend == FLP_BACKEND_AUTO)
        return FLP_OK;
    return status == FLP_OK ? flp_score_gpu_open(driver, options->device, options->device_wraps, &now->gpu) : status;
}

static flp_status plan_once(const flp_score_options *options, const flp_score_inputs *inputs, flp_backend backend, session *now, flp_score_result *result)
{
    flp_linear_logp_problem problem = inputs->problem;
    flp_status status = FLP_OK;
    problem.backend = backend;
    if (now->gpu.driver != NULL) {
        status = flp_score_gpu_chunk(&now->gpu, inputs, options->chunk_rows, &problem.rows);
    } else {
        int64_t chunk = options->chunk_rows ? options->chunk_rows : CPU_CHUNK_ROWS;
        problem.rows = chunk < problem.rows ? chunk : problem.rows;
        problem.pointer_alignment = host_alignment(inputs);
    }
    if (status == FLP_OK)
        status = flp_score_plan_create(now->context, inputs, &problem, result->problem, sizeof result->problem, &now->plan);
    if (status != FLP_OK)
        return status;
    result->chunk_rows = problem.rows;
    result->path = flp_plan_backend(now->plan);
    snprintf(result->reason, sizeof result->reason, "%s", flp_plan_reason(now->plan));
    copy_device(now->plan, result->device, sizeof result->device);
    snprintf(result->numerics, sizeof result->numerics, "%s", flp_plan_numerics(now->plan));
    return FLP_OK;
}

/* Appends alternatives to the message, which says what to install. */
static flp_status name_other_ways(flp_status status)
{
    char why[FLP_STATUS_MESSAGE_BYTES];
    flp_status_keep_message(why);
    return flp_status_fail(status, "%s; without it: kernels that fusedlogp-gen has prebuilt, or --backend cpu", why);
}

/* Where no kernel fits the device, the first plan is one of the CPU path. This path reads the mapped files themselves, so the GPU is closed, and a second
 * plan is made for that memory; it gets the first one's reason. */
static flp_status make_plan(const flp_score_options *options, const flp_score_inputs *inputs, session *now, flp_score_result *result)
{
    char reason[sizeof result->reason];
    flp_status status = plan_once(options, inputs, options->backend, now, result);
    if (status == FLP_NO_NVRTC)
        return name_other_ways(status);
    if (status != FLP_OK || now->gpu.driver == NULL || result->path != FLP_BACKEND_CPU)
        return status;
    memcpy(reason, result->reason, sizeof reason);
    flp_plan_destroy(now->plan);
    now->plan = NULL;
    flp_score_gpu_close(&now->gpu);
    status = plan_once(options, inputs, FLP_BACKEND_CPU, now, result);
    memcpy(result->reason, reason, sizeof reason);
    return status;
}

static flp_status execute_chunk(const flp_score_options *options, const flp_score_inputs *inputs, session *now, flp_score_result *result, int64_t first,
                                int64_t rows)
{
    const flp_linear_logp_problem *problem = &inputs->problem;
    const void *hidden;
    flp_status status = flp_score_inputs_rows(inputs, first, rows, now->converted, &hidden, &now->rounded);
    if (status != FLP_OK)
        return status;
    flp_linear_logp_args args = { .rows = rows,
                                  .hidden = hidden,
                                  .weight = inputs->weight.data,
                                  .bias = inputs->bias.data,
                                  .target = (const char *)inputs->target.data + first * flp_dtype_bytes(problem->target_dtype),
                                  .ignore_index = options->ignore_index,
                                  .flags = FLP_IGNORE_INDEX,
                                  .temperature = options->temperature,
                                  .logp = result->logp + first,
                                  .lse = result->lse ? result->lse + first : NULL,
                                  .entropy = result->entropy ? result->entropy + first : NULL,
                                  .argmax = result->argmax ? result->argmax + first : NULL };
    return now->gpu.driver ? flp_score_gpu_execute(&now->gpu, inputs, now->plan, &args) : flp_score_execute(inputs, now->plan, &args);
}

static flp_status allocate_converted(const flp_score_inputs *inputs, int64_t chunk_rows, session *now)
{
    size_t bytes = (size_t)chunk_rows * (size_t)inputs->problem.hidden * (size_t)flp_dtype_bytes(inputs->problem.dtype);
    now->converted = inputs->converts ? malloc(bytes ? bytes : 1) : NULL;
    return now->converted != NULL || !inputs->converts ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "%zu bytes for hidden in the weight's type", bytes);
}

static void tell_conversion(const flp_score_inputs *inputs, const session *now)
{
    const char *from = flp_dtype_name(inputs->hidden.dtype), *to = flp_dtype_name(inputs->problem.dtype);
    if (now->rounded > 0)
        flp_console_error("warning: --hidden: converted from %s to %s as the weight has; %" PRId64 " of %" PRId64 " values were rounded", from, to,
                          now->rounded, inputs->problem.rows * inputs->problem.hidden);
    else
        flp_console_error("--hidden: converted from %s to %s as the weight has, which holds every value exactly", from, to);
}

static flp_status execute_all(const flp_score_options *options, const flp_score_inputs *inputs, session *now, flp_score_result *result)
{
    int64_t rows = inputs->problem.rows;
    flp_status status = now->gpu.driver ? flp_score_gpu_load(&now->gpu, inputs, now->plan, result->chunk_rows) : FLP_OK;
    double start = flp_clock_seconds();
    if (status == FLP_OK)
        status = allocate_converted(inputs, result->chunk_rows, now);
    for (int64_t first = 0; first < rows && status == FLP_OK; first += result->chunk_rows) {
        int64_t left = rows - first;
        if (!options->quiet && !options->json)
            flp_console_progress_of(first, rows, "rows", flp_clock_seconds() - start);
        status = execute_chunk(options, inputs, now, result, first, left < result->chunk_rows ? left : result->chunk_rows);
    }
    flp_console_progress("%s", "");
    if (status == FLP_OK && inputs->converts)
        tell_conversion(inputs, now);
    return status;
}

flp_status flp_score_run(const flp_score_options *options, const flp_score_inputs *inputs, flp_score_result *result)
{
    flp_context_options context_options = { .cpu_threads = options->threads };
    if (options->backend == FLP_BACKEND_CPU)
        context_options.flags = FLP_CONTEXT_NO_GPU;
    session now = { 0 };
    double start = flp_clock_seconds();
    flp_status status = allocate_results(options, inputs->problem.rows, result);
    if (status == FLP_OK)
        status = open_device(options, &now);
    if (status == FLP_OK)
        status = flp_context_create(&context_options, &now.context);
    if (status == FLP_OK)
        status = make_plan(options, inputs, &now, result);
    double planned = flp_clock_seconds();
    if (status == FLP_OK)
        status = execute_all(options, inputs, &now, result);
    result->plan_seconds = planned - start;
    result->seconds = flp_clock_seconds() - planned;
    free(now.converted);
    flp_plan_destroy(now.plan);
    flp_context_destroy(now.context);
    flp_score_gpu_close(&now.gpu);
    return status;
}

void flp_score_run_free(flp_score_result *result)
{
    free(result->logp);
    free(result->lse);
    free(result->entropy);
    free(result->argmax);
    memset(result, 0, sizeof *result);
}
