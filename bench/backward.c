/* Sets one case of the backward up, checks it, measures it alone and behind its forward. */
#include "backward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backward_check.h"
#include "base/status.h"
#include "baselines.h"
#include "cases.h"
#include "plan/linear_logp_backward_plan.h"
#include "plan/linear_logp_backward_problem.h"
#include "regimes.h"

enum { NON_BLOCKING = 1, HIDDEN_STREAM = 31, WEIGHT_STREAM = 32, G_STREAM = 33, BASELINE_STREAM = 34 };

const char *const flp_backward_cases[] = {
    "linear_logp_backward:bf16:n8192:d4096:v128256:gh_bf16:gw_bf16", "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16", NULL
};

typedef struct {
    flp_gpu *gpu;
    flp_linear_logp_backward_problem problem;
    flp_linear_logp_problem forward;
    CUstream stream;
    flp_gpu_kernels kernels;
    flp_cublas cublas;
    flp_gpu_matrix hidden, weight;
    CUdeviceptr target, logp, lse, g, grad_hidden, grad_weight, workspace;
    CUdeviceptr logits, base_hidden, base_weight; /* what the baseline writes */
    int64_t *targets;
    float *g_host, *lse_host;
    flp_context *context;
    flp_plan *forward_plan, *backward_plan;
    flp_linear_logp_args forward_args;
    flp_linear_logp_backward_args backward_args;
} bench;

int flp_backward_is_case(const char *text)
{
    return strncmp(text, "linear_logp_backward:", 21) == 0;
}

static flp_status parse(const char *text, bench *b)
{
    flp_linear_logp_backward_problem given;
    flp_status status = flp_linear_logp_backward_problem_parse(text, &given);
    const flp_linear_logp_problem *forward = &b->problem.forward;

    if (status == FLP_OK)
        status = flp_linear_logp_backward_problem_normalize(&given, &b->problem);
    if (status != FLP_OK)
        return status;
    b->forward = *forward;
    if (forward->dtype != FLP_BF16 || forward->bias_dtype != FLP_NONE || forward->weight_layout != FLP_VOCAB_HIDDEN || forward->rows < 2 ||
        forward->hidden_stride != forward->hidden || forward->weight_stride != forward->hidden || forward->hidden % 8 != 0 ||
        forward->softcap != 0 || b->problem.grad_hidden != FLP_BF16 || b->problem.grad_weight != FLP_BF16 || b->problem.accumulate)
        return flp_status_fail(FLP_BAD_ARGUMENT, "case %s: wanted bf16, rows, [V, D] without gaps, D a multiple of 8, both gradients in bf16, no "
                               "options", text);
    return FLP_OK;
}

/* ---- what is measured */

static flp_status launch_backward(void *data)
{
    bench *b = data;

    return flp_linear_logp_backward_execute(b->backward_plan, &b->backward_args);
}

static flp_status launch_both(void *data)
{
    bench *b = data;
    flp_status status = flp_linear_logp_execute(b->forward_plan, &b->forward_args);

    return status == FLP_OK ? launch_backward(data) : status;
}

static flp_status launch_logits(const bench *b)
{
    return flp_cublas_logits(&b->cublas, flp_gpu_pointer(b->hidden.data), flp_gpu_pointer(b->weight.data), flp_gpu_pointer(b->logits),
                             b->forward.rows, b->forward.hidden, b->forward.vocab);
}

static flp_status launch_three_products(void *data)
{
    bench *b = data;
    const void *logits = flp_gpu_pointer(b->logits);
    flp_status status = launch_logits(b);

    if (status == FLP_OK)
        status = flp_cublas_grad_hidden(&b->cublas, logits, flp_gpu_pointer(b->weight.data), flp_gpu_pointer(b->base_hidden), b->forward.rows,
                                        b->forward.hidden, b->forward.vocab);
    return status == FLP_OK ? flp_cublas_grad_weight(&b->cublas, logits, flp_gpu_pointer(b->hidden.data), flp_gpu_pointer(b->base_weight),
                                                     b->forward.rows, b->forward.hidden, b->forward.vocab)
                            : status;
}

static flp_status launch_four_products(void *data)
{
    flp_status status = launch_logits(data);

    return status == FLP_OK ? launch_three_products(data) : status;
}

/* ---- setting up */

static flp_status allocate_all(bench *b)
{
    const size_t rows = (size_t)b->forward.rows, hidden_bytes = rows * (size_t)b->forward.hidden * 2;
    const size_t weight_bytes = (size_t)b->forward.vocab * (size_t)b->forward.hidden * 2;
    CUdeviceptr hidden = 0, weight = 0;
    const struct {
        size_t bytes;
        CUdeviceptr *pointer;
    } all[] = {
        { hidden_bytes, &hidden }, { hidden_bytes, &b->grad_hidden }, { hidden_bytes, &b->base_hidden },
        { weight_bytes, &weight }, { weight_bytes, &b->grad_weight }, { weight_bytes, &b->base_weight },
        { rows * (size_t)b->forward.vocab * 2, &b->logits }, { rows * sizeof(float), &b->logp }, { rows * sizeof(float), &b->lse },
    };
    flp_status status = FLP_OK;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && status == FLP_OK; i++)
        status = flp_gpu_allocate(b->gpu, all[i].bytes, all[i].pointer);
    b->hidden = flp_gpu_matrix_rows(hidden, FLP_BF16, b->forward.rows, b->forward.hidden);
    b->weight = flp_gpu_matrix_rows(weight, FLP_BF16, b->forward.vocab, b->forward.hidden);
    b->targets = malloc(rows * sizeof(*b->targets));
    b->g_host = malloc(rows * sizeof(*b->g_host));
    b->lse_host = malloc(rows * sizeof(*b->lse_host));
    if (status == FLP_OK && (!b->targets || !b->g_host || !b->lse_host))
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for targets");
    return status;
}

/* hidden ~ N(0, 1), weight ~ N(0, 4 / D): logits with a deviation of 2. Upstream gradients ~ N(0, 1 / N^2). */
static flp_status fill_inputs(bench *b)
{
    const int64_t rows = b->forward.rows;
    flp_status status;

    for (int64_t i = 0; i < rows; i++) {
        b->targets[i] = i == 0 ? b->forward.vocab - 1 : (i * 7919 + 13) % b->forward.vocab;
        b->g_host[i] = (float)(flp_case_random_normal(G_STREAM, (uint64_t)i) / (double)rows);
    }
    status = flp_gpu_kernels_fill(b->gpu, &b->kernels, &b->hidden, HIDDEN_STREAM, 1);
    if (status == FLP_OK)
        status = flp_gpu_kernels_fill(b->gpu, &b->kernels, &b->weight, WEIGHT_STREAM, 2 / sqrt((double)b->forward.hidden));
    if (status == FLP_OK)
        status = flp_gpu_copy_in(b->gpu, b->targets, (size_t)rows * sizeof(*b->targets), &b->target);
    return status == FLP_OK ? flp_gpu_copy_in(b->gpu, b->g_host, (size_t)rows * sizeof(float), &b->g) : status;
}

/* Its gradients' products find in place of the derivatives what the logits' product left there: numbers as random. */
static flp_status make_baseline(bench *b)
{
    flp_status status = flp_cublas_open(b->stream, &b->cublas);

    if (status == FLP_OK)
        status = launch_four_products(b);
    return status == FLP_OK ? flp_gpu_synchronize(b->gpu) : status;
}

static flp_status make_plans(bench *b, const flp_forward_options *options)
{
    flp_status status = flp_context_create(NULL, &b->context);

    b->problem.forward.backend = b->forward.backend = options->backend;
    if (status == FLP_OK)
        status = flp_linear_logp_plan_create(b->context, &b->forward, &b->forward_plan);
    if (status == FLP_OK)
        status = flp_linear_logp_backward_plan_create(b->context, &b->problem, &b->backward_plan);
    if (status == FLP_OK && !flp_plan_on_gpu(b->forward_plan))
        status = flp_status_fail(FLP_NO_VARIANT, "the plan runs on the CPU: %s", b->forward_plan->choice.reason);
    return status;
}

static int64_t workspace_bytes(const bench *b)
{
    const int64_t forward = flp_plan_workspace_bytes(b->forward_plan, b->forward.rows);
    const int64_t backward = flp_plan_workspace_bytes(b->backward_plan, b->forward.rows);

    return forward > backward ? forward : backward;
}

static flp_status make_ours(bench *b, const flp_forward_options *options)
{
    flp_status status = make_plans(b, options);
    size_t bytes;

    if (status != FLP_OK)
        return status;
    bytes = (size_t)workspace_bytes(b);
    status = flp_gpu_allocate(b->gpu, bytes, &b->workspace);
    b->forward_args = (flp_linear_logp_args){
        .rows = b->forward.rows, .hidden = flp_gpu_pointer(b->hidden.data), .weight = flp_gpu_pointer(b->weight.data),
        .target = flp_gpu_pointer(b->target), .ignore_index = -100, .logp = flp_gpu_pointer(b->logp), .lse = flp_gpu_pointer(b->lse),
        .workspace = flp_gpu_pointer(b->workspace), .workspace_bytes = bytes, .stream = b->stream,
    };
    b->backward_args = (flp_linear_logp_backward_args){
        .rows = b->forward.rows, .hidden = flp_gpu_pointer(b->hidden.data), .weight = flp_gpu_pointer(b->weight.data),
        .target = flp_gpu_pointer(b->target), .ignore_index = -100, .lse = flp_gpu_pointer(b->lse), .g_logp = flp_gpu_pointer(b->g),
        .grad_hidden = flp_gpu_pointer(b->grad_hidden), .grad_weight = flp_gpu_pointer(b->grad_weight),
        .workspace = flp_gpu_pointer(b->workspace), .workspace_bytes = bytes, .stream = b->stream,
    };
    if (status == FLP_OK)
        status = launch_both(b);
    return status == FLP_OK ? flp_gpu_synchronize(b->gpu) : status;
}

static flp_status check(bench *b, flp_backward_errors *errors)
{
    const flp_backward_answer answer = {
        .gpu = b->gpu, .kernels = &b->kernels, .hidden = b->hidden, .weight = b->weight, .grad_hidden = b->grad_hidden,
        .grad_weight = b->grad_weight, .targets = b->targets, .g = b->g_host, .lse = b->lse_host,
    };
    flp_status status = flp_gpu_download(b->gpu, b->lse_host, b->lse, (size_t)b->forward.rows * sizeof(float));

    return status == FLP_OK ? flp_backward_check(&answer, errors) : status;
}

/* ---- what goes into the results */

/* products: of N, D and V, in ours and in the baseline. */
static json_t *pack_case(const bench *b, const char *text, int products, const flp_backward_errors *errors, json_t *regimes)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(b->backward_plan);
    const double work = 2.0 * products * (double)b->forward.rows * (double)b->forward.hidden * (double)b->forward.vocab * 1e-12;
    char name[FLP_PROBLEM_TEXT_BYTES + 32];

    snprintf(name, sizeof(name), "%s%s", products == 4 ? "linear_logp+" : "", text);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:f, s:f, s:s, s:i, s:s, s:f, s:O}", "problem", name, "path",
                     flp_choose_name(b->backward_plan->choice.path), "kernel", plan->logits->manifest.variant, "product",
                     plan->weight_product->manifest.variant, "numerics", flp_plan_numerics(b->backward_plan), "workspace_bytes",
                     (json_int_t)workspace_bytes(b), "rows_checked", 2 * FLP_BACKWARD_CHECKED, "relative_error", errors->hidden,
                     "grad_weight_error", errors->weight, "grad_hidden_rounding", errors->hidden_rounding, "grad_weight_rounding",
                     errors->weight_rounding, "baseline", products == 4 ? "cuBLAS logits twice, gradients" : "cuBLAS logits, gradients",
                     "cublas_version", b->cublas.version, "unit", "TFLOP/s", "work", work, "regimes", regimes);
}

static flp_status measure(bench *b, const char *text, int products, const flp_forward_options *options, const flp_backward_errors *errors,
                          json_t *results)
{
    const flp_measured ours = { products == 4 ? launch_both : launch_backward, b };
    const flp_measured baseline = { products == 4 ? launch_four_products : launch_three_products, b };
    json_t *regimes = json_object();
    flp_status status = regimes ? flp_regimes_measure(b->gpu, b->stream, options->regimes, &options->measure, &ours, &baseline, regimes)
                                : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");

    if (status == FLP_OK && json_array_append_new(results, pack_case(b, text, products, errors, regimes)) != 0)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    json_decref(regimes);
    return status;
}

static flp_status run(bench *b, const char *text, const flp_forward_options *options, json_t *results)
{
    flp_backward_errors errors;
    flp_status status = flp_gpu_check(b->gpu, b->gpu->driver->stream_create(&b->stream, NON_BLOCKING), "cuStreamCreate");

    if (status == FLP_OK)
        status = flp_gpu_kernels_load(b->gpu, &b->kernels);
    if (status == FLP_OK)
        status = allocate_all(b);
    if (status == FLP_OK)
        status = fill_inputs(b);
    if (status == FLP_OK)
        status = make_baseline(b);
    if (status == FLP_OK)
        status = make_ours(b, options);
    if (status == FLP_OK)
        status = check(b, &errors);
    for (int products = 3; products <= 4 && status == FLP_OK; products++)
        status = measure(b, text, products, options, &errors, results);
    return status;
}

flp_status flp_backward_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **results)
{
    bench b = { .gpu = gpu };
    flp_status status = parse(text, &b);

    *results = json_array();
    if (status == FLP_OK)
        status = *results ? run(&b, text, options, *results) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the results");
    if (status != FLP_OK) {
        json_decref(*results);
        *results = NULL;
    }
    flp_plan_destroy(b.forward_plan);
    flp_plan_destroy(b.backward_plan);
    flp_context_destroy(b.context);
    flp_cublas_close(&b.cublas);
    flp_gpu_kernels_unload(gpu, &b.kernels);
    flp_gpu_free_all(gpu);
    if (b.stream)
        gpu->driver->stream_destroy(b.stream);
    free(b.targets);
    free(b.g_host);
    free(b.lse_host);
    return status;
}
