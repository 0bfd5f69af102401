/* Sets up what the benchmarks of gradients share. */
#include "base/dtype.h"
#include "gradient_setting.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "cases.h"
#include "core/tune_arrays.h"
#include "peaked_inputs.h"

enum { NON_BLOCKING = 1, HIDDEN_STREAM = 31, WEIGHT_STREAM = 32, G_STREAM = 33, ZERO_STREAM = 34 };

int flp_gradient_setting_takes(const flp_linear_logp_problem *normal)
{
    return flp_cublas_takes(normal) && normal->dtype == FLP_BF16 && normal->bias_dtype == FLP_NONE && normal->rows >= 2 && normal->target_dtype == FLP_I64;
}

/* ---- the baseline */

static flp_status launch_logits(const flp_gradient_setting *b)
{
    return flp_cublas_logits(&b->cublas, &b->problem, flp_gpu_pointer(b->hidden.data), flp_gpu_pointer(b->weight.data), flp_gpu_pointer(b->logits));
}

int flp_gradient_setting_count(const flp_gradient_setting *b)
{
    return b->weight_dtype == FLP_NONE ? 2 : 3;
}

const char *flp_gradient_setting_name(const flp_gradient_setting *b)
{
    return b->weight_dtype == FLP_NONE ? "cuBLAS logits, grad_hidden" : "cuBLAS logits, gradients";
}

flp_status flp_gradient_setting_products(void *data)
{
    flp_gradient_setting *b = data;
    const void *logits = flp_gpu_pointer(b->logits);
    flp_status status = launch_logits(b);

    if (status == FLP_OK)
        status = flp_cublas_grad_hidden(&b->cublas, &b->problem, logits, flp_gpu_pointer(b->weight.data), flp_gpu_pointer(b->base_hidden));
    return status == FLP_OK && b->weight_dtype != FLP_NONE
               ? flp_cublas_grad_weight(&b->cublas, &b->problem, logits, flp_gpu_pointer(b->hidden.data), flp_gpu_pointer(b->base_weight))
               : status;
}

flp_status flp_gradient_setting_products_and_logits(void *data)
{
    flp_status status = launch_logits(data);

    return status == FLP_OK ? flp_gradient_setting_products(data) : status;
}

/* ---- setting up */

static flp_gpu_matrix weight_matrix(const flp_gradient_setting *b, CUdeviceptr data, flp_dtype dtype)
{
    const int turned = b->problem.weight_layout == FLP_HIDDEN_VOCAB;

    return (turned ? flp_gpu_matrix_turned : flp_gpu_matrix_rows)(data, dtype, b->problem.vocab, b->problem.hidden);
}

static flp_status allocate_all(flp_gradient_setting *b)
{
    const size_t rows = (size_t)b->problem.rows, hidden_bytes = rows * (size_t)b->problem.hidden * 2;
    const size_t weight_bytes = (size_t)b->problem.vocab * (size_t)b->problem.hidden * 2;
    const int wants_weight = b->weight_dtype != FLP_NONE;
    CUdeviceptr hidden = 0, weight = 0;
    const struct {
        size_t bytes;
        CUdeviceptr *pointer;
    } all[] = {
        { hidden_bytes, &hidden },
        { hidden_bytes / 2 * (size_t)flp_dtype_bytes(b->hidden_dtype), &b->grad_hidden },
        { hidden_bytes, &b->base_hidden },
        { weight_bytes, &weight },
        { wants_weight ? weight_bytes / 2 * (size_t)flp_dtype_bytes(b->weight_dtype) : 0, &b->grad_weight },
        { wants_weight ? weight_bytes : 0, &b->base_weight },
        { rows * (size_t)b->problem.vocab * 2, &b->logits },
        { rows * sizeof(float), &b->logp },
        { rows * sizeof(float), &b->lse },
    };
    flp_status status = FLP_OK;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && status == FLP_OK; i++)
        status = all[i].bytes > 0 ? flp_gpu_allocate(b->gpu, all[i].bytes, all[i].pointer) : FLP_OK;
    b->hidden = flp_gpu_matrix_rows(hidden, FLP_BF16, b->problem.rows, b->problem.hidden);
    b->weight = weight_matrix(b, weight, FLP_BF16);
    b->targets = malloc(rows * sizeof(*b->targets));
    b->g_host = malloc(rows * sizeof(*b->g_host));
    b->lse_host = malloc(rows * sizeof(*b->lse_host));
    if (status == FLP_OK && (!b->targets || !b->g_host || !b->lse_host))
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for targets");
    return status;
}

/* Without a filter, logits have a standard deviation of 2. */
static flp_status fill_matrices(flp_gradient_setting *b)
{
    const int peaked = b->filter_eps > 0;
    flp_status status = flp_gpu_kernels_fill(b->gpu, &b->kernels, &b->hidden, HIDDEN_STREAM, 1);

    if (status == FLP_OK)
        status = flp_gpu_kernels_fill(b->gpu, &b->kernels, &b->weight, WEIGHT_STREAM, (peaked ? 1 : 2) / sqrt((double)b->problem.hidden));
    return status == FLP_OK && peaked ? flp_peaked_inputs_make(b->gpu, &b->hidden, &b->weight, b->target) : status;
}

static flp_status clear_grad_weight(flp_gradient_setting *b)
{
    const flp_gpu_matrix grad_weight = weight_matrix(b, b->grad_weight, b->weight_dtype);

    return flp_gpu_kernels_fill(b->gpu, &b->kernels, &grad_weight, ZERO_STREAM, 0);
}

/* Upstream gradients ~ N(0, 1 / N^2). */
static flp_status fill_inputs(flp_gradient_setting *b)
{
    const int64_t rows = b->problem.rows;
    flp_status status;

    for (int64_t i = 0; i < rows; i++) {
        b->targets[i] = i > 0 && b->filter_eps > 0 ? flp_peaked_inputs_target(i, b->problem.vocab) : flp_tune_arrays_target(i, b->problem.vocab);
        b->g_host[i] = (float)(flp_case_random_normal(G_STREAM, (uint64_t)i) / (double)rows);
    }
    status = flp_temperature_make(b->gpu, rows, &b->temperature);
    if (status == FLP_OK)
        status = flp_gpu_copy_in(b->gpu, b->targets, (size_t)rows * sizeof(*b->targets), &b->target);
    if (status == FLP_OK)
        status = flp_gpu_copy_in(b->gpu, b->g_host, (size_t)rows * sizeof(float), &b->g);
    if (status == FLP_OK)
        status = fill_matrices(b);
    return status == FLP_OK && b->weight_dtype != FLP_NONE ? clear_grad_weight(b) : status;
}

/* Opens cuBLAS and launches the baseline once. In the place of derivatives, its products of the gradients read what its product of the logits has written:
 * numbers that are as random. */
static flp_status make_baseline(flp_gradient_setting *b)
{
    flp_status status = flp_cublas_open(b->stream, &b->cublas);

    if (status == FLP_OK)
        status = flp_gradient_setting_products_and_logits(b);
    return status == FLP_OK ? flp_gpu_synchronize(b->gpu) : status;
}

flp_status flp_gradient_setting_open(flp_gradient_setting *b)
{
    flp_status status = flp_gpu_check(b->gpu, b->gpu->driver->stream_create(&b->stream, NON_BLOCKING), "cuStreamCreate");

    if (status == FLP_OK)
        status = flp_gpu_kernels_load(b->gpu, &b->kernels);
    if (status == FLP_OK)
        status = allocate_all(b);
    if (status == FLP_OK)
        status = fill_inputs(b);
    return status == FLP_OK ? make_baseline(b) : status;
}

void flp_gradient_setting_close(flp_gradient_setting *b)
{
    flp_cublas_close(&b->cublas);
    flp_gpu_kernels_unload(b->gpu, &b->kernels);
    flp_gpu_free_all(b->gpu);
    if (b->stream)
        b->gpu->driver->stream_destroy(b->stream);
    free(b->targets);
    free(b->g_host);
    free(b->lse_host);
    flp_temperature_free_rows(&b->temperature);
}

flp_status flp_gradient_setting_check(flp_gradient_setting *b, flp_backward_errors *errors)
{
    const flp_backward_answer answer = {
        .gpu = b->gpu,
        .kernels = &b->kernels,
        .hidden = b->hidden,
        .weight = b->weight,
        .grad_hidden = b->grad_hidden,
        .grad_weight = b->grad_weight,
        .hidden_dtype = b->hidden_dtype,
        .weight_dtype = b->weight_dtype,
        .targets = b->targets,
        .g = b->g_host,
        .lse = b->lse_host,
        .filter_eps = b->filter_eps,
        .softcap = b->problem.softcap,
        .temperatures = b->temperature.rows,
    };
    flp_status status = flp_gpu_download(b->gpu, b->lse_host, b->lse, (size_t)b->problem.rows * sizeof(float));

    return status == FLP_OK ? flp_backward_check(&answer, errors) : status;
}
