/* Sets one case of the forward up, checks it and measures it. */
#include "forward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "baselines.h"
#include "core/tune_arrays.h"
#include "device/gpu_reference.h"
#include "mma_product.h"
#include "operators/linear/linear_logp_plan.h"
#include "regimes.h"

/* All bytes of a bias are BIAS_BYTE: it is the same number for all entries, which changes no logp. */
enum { CHECKED_ROWS = 64, READ_ROWS = 64, NON_BLOCKING = 1, HIDDEN_STREAM = 31, WEIGHT_STREAM = 32, BIAS_BYTE = 0x3f };

/* The relative error of logp that the forward promises. */
static const double promised_error = 1e-6;

const char *const flp_forward_cases[] = {
    "n4096:d2048:v131072", "n4096:d2304:v256000", "n8192:d4096:v128256", "n1:d4096:v128256", "n16:d4096:v128256", "n64:d4096:v128256", NULL
};

typedef struct {
    flp_gpu *gpu;
    flp_linear_logp_problem problem;
    CUstream stream;
    flp_gpu_kernels kernels;
    flp_cublas cublas;
    flp_read_kernel read;
    flp_gpu_matrix hidden, weight;
    CUdeviceptr target, bias, logp, logits;
    int64_t *targets;
    flp_temperature temperature;
    flp_context *context;
    flp_plan *plan, product; /* product: the portable path's bare product, where that is the baseline */
    flp_linear_logp_args args;
    int64_t memory_bytes; /* device memory that the library took, as the driver counts it */
} forward;

/* With few rows, reading the weight bounds the time; with many, the product does. */
static int reads_weight(const flp_linear_logp_problem *problem)
{
    return problem->rows <= READ_ROWS;
}

/* The portable path, where it is requested by name, is compared with a bare product of its own mma.sync tiles. */
static int is_portable(const flp_linear_logp_problem *problem)
{
    return problem->backend == FLP_BACKEND_PORTABLE;
}

static int64_t weight_bytes(const flp_linear_logp_problem *problem)
{
    return problem->vocab * problem->hidden * flp_dtype_bytes(problem->dtype);
}

/* Ours computes an fp32 product as three tf32 products, so the baseline is three of cuBLAS's. */
static int baseline_products(const flp_linear_logp_problem *problem)
{
    return problem->dtype == FLP_F32 && !is_portable(problem) ? 3 : 1;
}

static const char *baseline_name(const flp_linear_logp_problem *problem)
{
    if (reads_weight(problem))
        return "read of the weight";
    if (is_portable(problem))
        return "bare mma.sync logits product";
    return problem->dtype == FLP_F32 ? "three cuBLAS tf32 logits products" : "cuBLAS logits product";
}

flp_status flp_forward_parse(const char *text, flp_linear_logp_problem *problem, flp_temperature *temperature)
{
    char whole[FLP_PROBLEM_TEXT_BYTES], *name;
    flp_linear_logp_problem given;
    flp_status status;

    snprintf(whole, sizeof(whole), "%s%s", strncmp(text, "linear_logp:", 12) == 0 ? "" : "linear_logp:bf16:", text);
    status = flp_temperature_cut(whole, temperature, &name);
    if (status == FLP_OK)
        status = flp_linear_logp_problem_parse(name, &given);
    free(name);
    if (status == FLP_OK)
        status = flp_problem_normalize(&flp_linear_logp_operator, &given, problem);
    if (status != FLP_OK)
        return status;
    if (!flp_cublas_takes(problem) || problem->rows < 1 || (problem->softcap != 0 && problem->bias_dtype != FLP_NONE))
        return flp_status_fail(FLP_BAD_ARGUMENT, "case %s: wanted rows, weight without gaps, in rows of a multiple of 8, as is D, no bias with a softcap",
                               text);
    return FLP_OK;
}

static flp_status launch_ours(void *data)
{
    forward *f = data;

    return flp_linear_logp_execute(f->plan, &f->args);
}

static flp_status launch_baseline(void *data)
{
    forward *f = data;
    const flp_linear_logp_problem *p = &f->problem;
    const void *hidden = flp_gpu_pointer(f->hidden.data), *weight = flp_gpu_pointer(f->weight.data);
    flp_status status = FLP_OK;

    if (reads_weight(p))
        return flp_read_kernel_launch(f->gpu, &f->read, f->weight.data, weight_bytes(p), f->stream);
    if (is_portable(p))
        return flp_mma_product_launch(&f->product, p->dtype, hidden, weight, flp_gpu_pointer(f->logits), p->rows, p->hidden, p->vocab, f->stream);
    for (int i = 0; i < baseline_products(p) && status == FLP_OK; i++)
        status = flp_cublas_logits(&f->cublas, p, hidden, weight, flp_gpu_pointer(f->logits));
    return status;
}

/* hidden ~ N(0, 1), weight ~ N(0, 4 / D): logits with a deviation of 2. */
static flp_status fill_inputs(forward *f)
{
    flp_linear_logp_problem *p = &f->problem;
    flp_status status;

    for (int64_t i = 0; i < p->rows; i++)
        f->targets[i] = flp_tune_arrays_target(i, p->vocab);
    status = flp_gpu_kernels_fill(f->gpu, &f->kernels, &f->hidden, HIDDEN_STREAM, 1);
    if (status == FLP_OK)
        status = flp_gpu_kernels_fill(f->gpu, &f->kernels, &f->weight, WEIGHT_STREAM, 2 / sqrt((double)p->hidden));
    if (status == FLP_OK)
        status = flp_gpu_copy_in(f->gpu, f->targets, (size_t)p->rows * sizeof(*f->targets), &f->target);
    return status == FLP_OK ? flp_temperature_make(f->gpu, p->rows, &f->temperature) : status;
}

static flp_status make_inputs(forward *f)
{
    flp_linear_logp_problem *p = &f->problem;
    const size_t bias_bytes = p->bias_dtype == FLP_NONE ? 0 : (size_t)(p->vocab * flp_dtype_bytes(p->bias_dtype));
    CUdeviceptr hidden = 0, weight = 0;
    flp_status status = flp_gpu_allocate(f->gpu, (size_t)(p->rows * p->hidden * flp_dtype_bytes(p->dtype)), &hidden);

    if (status == FLP_OK)
        status = flp_gpu_allocate(f->gpu, (size_t)weight_bytes(p), &weight);
    if (status == FLP_OK)
        status = flp_gpu_allocate(f->gpu, (size_t)p->rows * sizeof(float), &f->logp);
    if (status == FLP_OK && bias_bytes > 0)
        status = flp_gpu_allocate(f->gpu, bias_bytes, &f->bias);
    if (status == FLP_OK && bias_bytes > 0)
        status = flp_gpu_set(f->gpu, f->bias, BIAS_BYTE, bias_bytes);
    f->hidden = flp_gpu_matrix_rows(hidden, p->dtype, p->rows, p->hidden);
    f->weight = (p->weight_layout == FLP_HIDDEN_VOCAB ? flp_gpu_matrix_turned : flp_gpu_matrix_rows)(weight, p->dtype, p->vocab, p->hidden);
    f->targets = malloc((size_t)p->rows * sizeof(*f->targets));
    if (!f->targets)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for targets");
    return status == FLP_OK ? fill_inputs(f) : status;
}

static flp_status allocate_logits(forward *f)
{
    return flp_gpu_allocate(f->gpu, (size_t)(f->problem.rows * f->problem.vocab * flp_dtype_bytes(f->problem.dtype)), &f->logits);
}

/* Launches the baseline once too, so that its own memory is taken before ours is counted. */
static flp_status make_baseline(forward *f)
{
    flp_status status;

    if (reads_weight(&f->problem)) {
        status = flp_read_kernel_load(f->gpu, &f->read);
    } else if (is_portable(&f->problem)) {
        return FLP_OK; /* make_bare_product makes it later, with the tile of our plan */
    } else {
        status = flp_cublas_open(f->stream, &f->cublas);
        if (status == FLP_OK)
            status = allocate_logits(f);
    }
    if (status == FLP_OK)
        status = launch_baseline(f);
    return status == FLP_OK ? flp_gpu_synchronize(f->gpu) : status;
}

static flp_status free_memory(const flp_gpu *gpu, int64_t *bytes)
{
    size_t free_bytes = 0, total_bytes;
    flp_status status = flp_gpu_check(gpu, gpu->driver->memory_info(&free_bytes, &total_bytes), "cuMemGetInfo");

    *bytes = (int64_t)free_bytes;
    return status;
}

static flp_status make_ours(forward *f)
{
    int64_t before = 0, after = 0;
    flp_status status = free_memory(f->gpu, &before);

    f->args = (flp_linear_logp_args){ .rows = f->problem.rows,
                                      .hidden = flp_gpu_pointer(f->hidden.data),
                                      .weight = flp_gpu_pointer(f->weight.data),
                                      .bias = flp_gpu_pointer(f->bias),
                                      .target = flp_gpu_pointer(f->target),
                                      .ignore_index = -100,
                                      .flags = FLP_IGNORE_INDEX,
                                      .temperature = f->temperature.of_all,
                                      .row_temperature = flp_gpu_pointer(f->temperature.row_temperature),
                                      .logp = flp_gpu_pointer(f->logp),
                                      .stream = f->stream };
    if (status == FLP_OK)
        status = flp_context_create(NULL, &f->context);
    if (status == FLP_OK)
        status = flp_linear_logp_plan_create(f->context, &f->problem, &f->plan);
    if (status == FLP_OK && !flp_plan_on_gpu(f->plan))
        status = flp_status_fail(FLP_NO_VARIANT, "the plan runs on the CPU: %s", flp_plan_reason(f->plan));
    if (status == FLP_OK)
        status = flp_gpu_set(f->gpu, f->logp, 0xff, (size_t)f->problem.rows * sizeof(float));
    if (status == FLP_OK)
        status = launch_ours(f);
    if (status == FLP_OK)
        status = flp_gpu_synchronize(f->gpu);
    if (status == FLP_OK)
        status = free_memory(f->gpu, &after);
    f->memory_bytes = before - after;
    return status;
}

static flp_status make_bare_product(forward *f)
{
    flp_status status;

    if (reads_weight(&f->problem) || !is_portable(&f->problem))
        return FLP_OK;
    status = flp_mma_product_load(f->plan, flp_linear_logp_plan_of(f->plan)->tile->manifest.variant, &f->product);
    return status == FLP_OK ? allocate_logits(f) : status;
}

/* *error: || logp - fp64 || / || fp64 || over `count` rows. Allowed: the promise, or what accumulating in fp32 costs where that is more. */
static flp_status check_rows(forward *f, int count, const int64_t *rows, const float *logp, double *error)
{
    const flp_gpu_reference_options options = { f->problem.softcap, f->temperature.rows };
    flp_gpu_reference_row reference[CHECKED_ROWS];
    int64_t targets[CHECKED_ROWS];
    double difference = 0, size = 0, rounding = 0, allowed;
    flp_status status;

    for (int i = 0; i < count; i++)
        targets[i] = f->targets[rows[i]];
    status = flp_gpu_reference_compute(f->gpu, &f->kernels, &f->hidden, &f->weight, &options, count, rows, targets, reference);
    if (status != FLP_OK)
        return status;
    for (int i = 0; i < count; i++) {
        difference = hypot(difference, logp[rows[i]] - reference[i].logp);
        size = hypot(size, reference[i].logp);
        rounding = hypot(rounding, reference[i].rounding);
    }
    *error = difference / size;
    allowed = fmax(promised_error, rounding / size);
    if (*error <= allowed)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "logp: relative error %.3g against fp64, allowed %.3g", *error, allowed);
}

static flp_status check(forward *f, double *error, int *checked)
{
    const int64_t count = f->problem.rows < CHECKED_ROWS ? f->problem.rows : CHECKED_ROWS;
    float *logp = malloc((size_t)f->problem.rows * sizeof(*logp));
    int64_t rows[CHECKED_ROWS];
    flp_status status =
        logp ? flp_gpu_download(f->gpu, logp, f->logp, (size_t)f->problem.rows * sizeof(*logp)) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for logp");

    for (int64_t i = 0; i < count; i++)
        rows[i] = count == 1 ? 0 : i * (f->problem.rows - 1) / (count - 1);
    for (int64_t i = 0; i < f->problem.rows && status == FLP_OK; i++)
        if (!(logp[i] <= 0))
            status = flp_status_fail(FLP_INTERNAL, "logp[%lld]: got %g", (long long)i, logp[i]);
    if (status == FLP_OK)
        status = check_rows(f, (int)count, rows, logp, error);
    *checked = (int)count;
    free(logp);
    return status;
}

/* ---- what goes into the results */

/* Floating-point operations or bytes of one call, in units of 10^12, so that dividing by seconds gives the rate. fp32 counts all three tf32 products. */
static double work(const flp_linear_logp_problem *p)
{
    if (reads_weight(p))
        return (double)weight_bytes(p) * 1e-12;
    return 2.0 * (double)(p->dtype == FLP_F32 ? 3 : 1) * (double)p->rows * (double)p->hidden * (double)p->vocab * 1e-12;
}

static json_t *pack_case(const forward *f, const char *text, double error, int checked, json_t *regimes)
{
    const flp_linear_logp_problem *p = &f->problem;

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:s, s:i, s:s, s:f, s:O}", "problem", text, "path",
                     flp_backend_name(flp_plan_backend(f->plan)), "tile", flp_linear_logp_plan_of(f->plan)->tile->manifest.variant, "combine",
                     flp_linear_logp_plan_of(f->plan)->combine->manifest.variant, "numerics", flp_plan_numerics(f->plan), "workspace_bytes",
                     (json_int_t)flp_plan_workspace_bytes(f->plan, p->rows), "memory_bytes", (json_int_t)f->memory_bytes, "rows_checked", (json_int_t)checked,
                     "relative_error", error, "baseline", baseline_name(p), "cublas_version", f->cublas.version, "unit", reads_weight(p) ? "TB/s" : "TFLOP/s",
                     "work", work(p), "regimes", regimes);
}

static flp_status format_case(const forward *f, char *text, size_t bytes)
{
    flp_status status = flp_linear_logp_problem_format(&f->problem, text, bytes);
    const size_t length = status == FLP_OK ? strlen(text) : 0;

    if (status == FLP_OK)
        snprintf(text + length, bytes - length, "%s", f->temperature.ending);
    return status;
}

static flp_status run(forward *f, const flp_forward_options *options, json_t *regimes, json_t **result)
{
    const flp_measured ours = { launch_ours, f }, baseline = { launch_baseline, f };
    char text[FLP_PROBLEM_TEXT_BYTES + sizeof(f->temperature.ending)];
    double error = 0;
    int checked = 0;
    flp_status status = format_case(f, text, sizeof(text));

    if (status == FLP_OK)
        status = flp_gpu_check(f->gpu, f->gpu->driver->stream_create(&f->stream, NON_BLOCKING), "cuStreamCreate");
    if (status == FLP_OK)
        status = flp_gpu_kernels_load(f->gpu, &f->kernels);
    if (status == FLP_OK)
        status = make_inputs(f);
    if (status == FLP_OK)
        status = make_baseline(f);
    if (status == FLP_OK)
        status = make_ours(f);
    if (status == FLP_OK)
        status = make_bare_product(f);
    if (status == FLP_OK)
        status = check(f, &error, &checked);
    if (status == FLP_OK)
        status = flp_regimes_measure(f->gpu, f->stream, options->regimes, &options->measure, &ours, &baseline, regimes);
    if (status == FLP_OK && !(*result = pack_case(f, text, error, checked, regimes)))
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    return status;
}

flp_status flp_forward_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result)
{
    forward f = { .gpu = gpu };
    json_t *regimes = json_object();
    flp_status status = flp_forward_parse(text, &f.problem, &f.temperature);

    *result = NULL;
    f.problem.backend = options->backend;
    if (status == FLP_OK)
        status = regimes ? run(&f, options, regimes, result) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    json_decref(regimes);
    flp_plan_destroy(f.plan);
    flp_context_destroy(f.context);
    flp_read_kernel_unload(gpu, &f.read);
    flp_cublas_close(&f.cublas);
    flp_gpu_kernels_unload(gpu, &f.kernels);
    flp_gpu_free_all(gpu);
    if (f.stream)
        gpu->driver->stream_destroy(f.stream);
    flp_temperature_free_rows(&f.temperature);
    free(f.targets);
    return status;
}
