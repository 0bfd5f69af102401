/* Sets one case of logits_logp up, checks it and measures it. */
#include "logits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "baselines.h"
#include "cpu/convert.h"
#include "core/plan.h"
#include "core/tune_arrays.h"
#include "regimes.h"

enum { CHECKED_ROWS = 8, NON_BLOCKING = 1, LOGITS_STREAM = 33, LAUNCH_BYTES = 4 << 20 };

/* The allowed relative error of logp against fp64: fp32's rounding of logits up to 12. */
static const double promised_error = 1e-6;

const char *const flp_logits_cases[] = { "logits_logp:bf16:n4096:v131072",
                                         "logits_logp:bf16:n8192:v32768",
                                         "logits_logp:bf16:n1:v262144",
                                         "logits_logp:f32:n4096:v151936",
                                         "logits_logp:bf16:n16:v131072",
                                         "logits_logp:bf16:n8192:v50257",
                                         "logits_logp:bf16:n65536:v1024",
                                         "logits_logp_backward:bf16:n4096:v131072:fused",
                                         "logits_logp_backward:bf16:n8192:v32768:fused",
                                         "logits_logp_backward:f32:n4096:v151936:fused",
                                         "logits_logp_backward:bf16:n4096:v131072",
                                         NULL };

typedef struct {
    flp_gpu *gpu;
    int is_backward;
    flp_logits_logp_problem problem;
    flp_logits_logp_backward_problem backward;
    int64_t bytes; /* of the logits */
    CUstream stream;
    flp_gpu_kernels kernels;
    flp_read_kernel read;
    flp_copy_kernel copy;
    CUdeviceptr logits, gradients, target, upstream, logp, lse;
    int64_t *targets;
    flp_context *context;
    flp_plan *plan;
    flp_logits_logp_args args;
    flp_logits_logp_backward_args backward_args;
} bench;

int flp_logits_is_case(const char *text)
{
    return strncmp(text, "logits_logp", strlen("logits_logp")) == 0;
}

static flp_status parse(const char *text, bench *b)
{
    flp_status status;

    b->is_backward = strncmp(text, "logits_logp_backward:", strlen("logits_logp_backward:")) == 0;
    if (b->is_backward) {
        status = flp_logits_logp_backward_problem_parse(text, &b->backward);
        b->problem =
            (flp_logits_logp_problem){ .dtype = b->backward.dtype, .rows = b->backward.rows, .vocab = b->backward.vocab, .softcap = b->backward.softcap };
    } else {
        status = flp_logits_logp_problem_parse(text, &b->problem);
    }
    if (status == FLP_OK && (b->problem.dtype == FLP_F16 || b->problem.rows < 1 || (b->problem.rows * b->problem.vocab) % 8 != 0))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "case %s: wanted bf16 or f32, rows, and whole 16 bytes", text);
    b->bytes = b->problem.rows * b->problem.vocab * flp_dtype_bytes(b->problem.dtype);
    return status;
}

static flp_status launch_ours(void *data)
{
    bench *b = data;

    return b->is_backward ? flp_logits_logp_backward_execute(b->plan, &b->backward_args) : flp_logits_logp_execute(b->plan, &b->args);
}

/* Where the logits have too few bytes to fill the device, the baseline is an empty launch. */
static const char *baseline_name(const bench *b)
{
    return b->is_backward ? "copy of the logits" : b->bytes < LAUNCH_BYTES ? "empty launch" : "read of the logits";
}

static flp_status launch_baseline(void *data)
{
    bench *b = data;

    if (b->is_backward)
        return flp_copy_kernel_launch(b->gpu, &b->copy, b->logits, b->gradients, b->bytes, b->stream);
    if (b->bytes < LAUNCH_BYTES)
        return flp_copy_kernel_launch_nothing(b->gpu, &b->copy, b->stream);
    return flp_read_kernel_launch(b->gpu, &b->read, b->logits, b->bytes, b->stream);
}

static flp_status fill_rows(bench *b)
{
    const size_t rows = (size_t)b->problem.rows;
    float *ones = malloc(rows * sizeof(*ones));
    flp_status status = FLP_OK;

    b->targets = malloc(rows * sizeof(*b->targets));
    if (!ones || !b->targets)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for targets");
    for (size_t i = 0; status == FLP_OK && i < rows; i++) {
        b->targets[i] = flp_tune_arrays_target((int64_t)i, b->problem.vocab);
        ones[i] = 1;
    }
    if (status == FLP_OK)
        status = flp_gpu_copy_in(b->gpu, b->targets, rows * sizeof(*b->targets), &b->target);
    if (status == FLP_OK)
        status = flp_gpu_copy_in(b->gpu, ones, rows * sizeof(*ones), &b->upstream);
    free(ones);
    return status;
}

/* logits ~ N(0, 4). */
static flp_status make_inputs(bench *b)
{
    flp_status status = flp_gpu_allocate(b->gpu, (size_t)b->bytes, &b->logits);
    flp_gpu_matrix matrix;

    if (status == FLP_OK && b->is_backward)
        status = flp_gpu_allocate(b->gpu, (size_t)b->bytes, &b->gradients);
    if (status == FLP_OK)
        status = flp_gpu_allocate(b->gpu, (size_t)b->problem.rows * sizeof(float), &b->logp);
    if (status == FLP_OK)
        status = flp_gpu_allocate(b->gpu, (size_t)b->problem.rows * sizeof(float), &b->lse);
    if (status != FLP_OK)
        return status;
    matrix = flp_gpu_matrix_rows(b->logits, b->problem.dtype, b->problem.rows, b->problem.vocab);
    status = flp_gpu_kernels_fill(b->gpu, &b->kernels, &matrix, LOGITS_STREAM, 2);
    return status == FLP_OK ? fill_rows(b) : status;
}

/* Fills in the forward's arguments and, for a backward, runs a forward that computes its lse. */
static flp_status run_forward(bench *b)
{
    b->args = (flp_logits_logp_args){ .rows = b->problem.rows,
                                      .logits = flp_gpu_pointer(b->logits),
                                      .target = flp_gpu_pointer(b->target),
                                      .ignore_index = -100,
                                      .flags = FLP_IGNORE_INDEX,
                                      .logp = flp_gpu_pointer(b->logp),
                                      .lse = flp_gpu_pointer(b->lse),
                                      .stream = b->stream };
    return b->is_backward ? flp_logits_logp(b->context, &b->problem, &b->args) : FLP_OK;
}

static flp_status make_ours(bench *b, const flp_forward_options *options)
{
    flp_status status = flp_context_create(NULL, &b->context);

    if (status == FLP_OK)
        status = run_forward(b);
    b->backward_args = (flp_logits_logp_backward_args){ .rows = b->problem.rows,
                                                        .logits = b->args.logits,
                                                        .target = b->args.target,
                                                        .ignore_index = -100,
                                                        .flags = FLP_IGNORE_INDEX,
                                                        .g_logp = flp_gpu_pointer(b->upstream),
                                                        .lse = b->args.lse,
                                                        .logp = b->backward.fused ? b->args.logp : NULL,
                                                        .grad_logits = flp_gpu_pointer(b->gradients),
                                                        .stream = b->stream };
    b->problem.backend = b->backward.backend = options->backend;
    if (status == FLP_OK)
        status = b->is_backward ? flp_logits_logp_backward_plan_create(b->context, &b->backward, &b->plan)
                                : flp_logits_logp_plan_create(b->context, &b->problem, &b->plan);
    if (status == FLP_OK && !flp_plan_on_gpu(b->plan))
        status = flp_status_fail(FLP_NO_VARIANT, "the plan runs on the CPU: %s", flp_plan_reason(b->plan));
    if (status == FLP_OK)
        status = launch_ours(b);
    return status == FLP_OK ? flp_gpu_synchronize(b->gpu) : status;
}

/* ---- the check: logp of some rows against fp64, and the gradient of the target */

/* Entry v of a row as the operator sees it. slope: its derivative by the logit. */
static double capped(const bench *b, const void *row, int64_t v, double *slope)
{
    const double cap = b->problem.softcap;
    float logit;

    flp_convert_to_f32(b->problem.dtype, (const char *)row + v * flp_dtype_bytes(b->problem.dtype), &logit, 1);
    *slope = cap > 0 ? 1 / (cosh(logit / cap) * cosh(logit / cap)) : 1;
    return cap > 0 ? cap * tanh(logit / cap) : logit;
}

static flp_status check_row(bench *b, int64_t i, void *row, double *difference, double *size)
{
    const int element = flp_dtype_bytes(b->problem.dtype);
    const int64_t vocab = b->problem.vocab;
    double sum = 0, largest = -INFINITY, slope, want;
    float logp, gradient = 0;
    flp_status status = flp_gpu_download(b->gpu, row, b->logits + (uint64_t)(i * vocab * element), (size_t)(vocab * element));

    if (status == FLP_OK)
        status = flp_gpu_download(b->gpu, &logp, b->logp + (uint64_t)i * sizeof(float), sizeof(logp));
    for (int pass = 0; status == FLP_OK && pass < 2; pass++)
        for (int64_t v = 0; v < vocab; v++) {
            if (pass == 0)
                largest = fmax(largest, capped(b, row, v, &slope));
            else
                sum += exp(capped(b, row, v, &slope) - largest);
        }
    if (status != FLP_OK)
        return status;
    want = capped(b, row, b->targets[i], &slope) - largest - log(sum);
    *difference = hypot(*difference, logp - want);
    *size = hypot(*size, want);
    if (!b->is_backward)
        return FLP_OK;
    status = flp_gpu_download(b->gpu, row, b->gradients + (uint64_t)((i * vocab + b->targets[i]) * element), (size_t)element);
    flp_convert_to_f32(b->problem.dtype, row, &gradient, 1);
    if (status == FLP_OK && !(fabs(gradient - slope * (1 - exp(want))) <= 0x1p-8))
        status = flp_status_fail(FLP_INTERNAL, "grad_logits: row %lld got %g at its target, wanted %g", (long long)i, gradient, slope * (1 - exp(want)));
    return status;
}

static flp_status check(bench *b, double *error, int *checked)
{
    void *row = malloc((size_t)(b->problem.vocab * flp_dtype_bytes(b->problem.dtype)));
    double difference = 0, size = 0;
    flp_status status = row ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a row");

    *checked = b->problem.rows < CHECKED_ROWS ? (int)b->problem.rows : CHECKED_ROWS;
    for (int i = 0; i < *checked && status == FLP_OK; i++)
        status = check_row(b, *checked == 1 ? 0 : i * (b->problem.rows - 1) / (*checked - 1), row, &difference, &size);
    *error = difference / size;
    if (status == FLP_OK && !(*error <= promised_error))
        status = flp_status_fail(FLP_INTERNAL, "logp: relative error %.3g against fp64, allowed %.3g", *error, promised_error);
    free(row);
    return status;
}

/* ---- what goes into the results */

/* Each input read once, each output written once. */
static double work(const bench *b)
{
    return (b->is_backward ? 2.0 : 1.0) * (double)b->bytes * 1e-12;
}

static json_t *pack_case(const bench *b, const char *text, double error, int checked, json_t *regimes)
{
    flp_text kernels = { 0 };
    json_t *result;

    flp_logits_name_kernels(b->plan, b->is_backward, b->problem.rows, &kernels);
    result = kernels.failed ? NULL
                            : json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:s, s:s, s:f, s:O}", "problem", text, "path",
                                        flp_backend_name(flp_plan_backend(b->plan)), "kernel", kernels.data, "numerics", flp_plan_numerics(b->plan),
                                        "workspace_bytes", (json_int_t)flp_plan_workspace_bytes(b->plan, b->problem.rows), "rows_checked", (json_int_t)checked,
                                        "relative_error", error, "baseline", baseline_name(b), "unit", "TB/s", "work", work(b), "regimes", regimes);
    flp_text_free(&kernels);
    return result;
}

static flp_status run(bench *b, const char *text, const flp_forward_options *options, json_t *regimes, json_t **result)
{
    const flp_measured ours = { launch_ours, b }, baseline = { launch_baseline, b };
    double error = 0;
    int checked = 0;
    flp_status status = flp_gpu_check(b->gpu, b->gpu->driver->stream_create(&b->stream, NON_BLOCKING), "cuStreamCreate");

    if (status == FLP_OK)
        status = flp_gpu_kernels_load(b->gpu, &b->kernels);
    if (status == FLP_OK)
        status = flp_read_kernel_load(b->gpu, &b->read);
    if (status == FLP_OK)
        status = flp_copy_kernel_load(b->gpu, &b->copy);
    if (status == FLP_OK)
        status = make_inputs(b);
    if (status == FLP_OK)
        status = make_ours(b, options);
    if (status == FLP_OK)
        status = check(b, &error, &checked);
    if (status == FLP_OK)
        status = flp_regimes_measure(b->gpu, b->stream, options->regimes, &options->measure, &ours, &baseline, regimes);
    if (status != FLP_OK)
        return status;
    *result = pack_case(b, text, error, checked, regimes);
    return *result ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
}

flp_status flp_logits_check_case(const char *text)
{
    bench b = { 0 };

    return parse(text, &b);
}

flp_status flp_logits_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result)
{
    bench b = { .gpu = gpu };
    json_t *regimes = json_object();
    flp_status status = regimes ? parse(text, &b) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");

    *result = NULL;
    if (status == FLP_OK)
        status = run(&b, text, options, regimes, result);
    json_decref(regimes);
    flp_plan_destroy(b.plan);
    flp_context_destroy(b.context);
    flp_read_kernel_unload(gpu, &b.read);
    flp_copy_kernel_unload(gpu, &b.copy);
    flp_gpu_kernels_unload(gpu, &b.kernels);
    flp_gpu_free_all(gpu);
    if (b.stream)
        gpu->driver->stream_destroy(b.stream);
    free(b.targets);
    return status;
}
