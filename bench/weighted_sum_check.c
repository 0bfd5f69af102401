/* The reference is computed on the device for sums, on the host for products. */
#include "weighted_sum_check.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "cpu/convert.h"

enum { CHECKED = FLP_WEIGHTED_SUM_CHECKED };

/* The relative error of sums in fp32 against fp64. */
static const double promised_error = 1e-6;

/* The largest relative error of one rounding to nearest. */
static double rounding(flp_dtype dtype)
{
    return dtype == FLP_F32 ? 0x1p-24 : 0x1p-9;
}

static size_t element_bytes(flp_dtype dtype)
{
    return (size_t)flp_dtype_bytes(dtype);
}

static int64_t place(int i, int64_t count)
{
    return i * (count - 1) / (CHECKED - 1);
}

static flp_status fetch(const flp_gpu *gpu, flp_dtype dtype, CUdeviceptr from, int64_t count, float *to)
{
    void *raw = malloc((size_t)count * element_bytes(dtype));
    flp_status status = raw ? flp_gpu_download(gpu, raw, from, (size_t)count * element_bytes(dtype))
                            : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for %lld elements", (long long)count);

    if (status == FLP_OK)
        flp_convert_to_f32(dtype, raw, to, (size_t)count);
    free(raw);
    return status;
}

static flp_status judge(const char *what, double error, double allowed)
{
    if (error <= allowed)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "%s: relative error %.3g against fp64, allowed %.3g", what, error, allowed);
}

static flp_status compute_sums(flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *x, const flp_gpu_matrix *vector, double *reference)
{
    int64_t places[CHECKED];
    CUdeviceptr index, sums;
    flp_status status;

    for (int i = 0; i < CHECKED; i++)
        places[i] = place(i, x->rows);
    status = flp_gpu_copy_in(gpu, places, sizeof(places), &index);
    if (status == FLP_OK)
        status = flp_gpu_allocate(gpu, CHECKED * sizeof(*reference), &sums);
    if (status == FLP_OK)
        status = flp_gpu_kernels_logits(gpu, kernels, x, vector, index, CHECKED, sums);
    return status == FLP_OK ? flp_gpu_download(gpu, reference, sums, CHECKED * sizeof(*reference)) : status;
}

flp_status flp_weighted_sum_check_sums(flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *x, const flp_gpu_matrix *vector, CUdeviceptr sums,
                                       double *error)
{
    double reference[CHECKED], difference = 0, size = 0;
    flp_status status = compute_sums(gpu, kernels, x, vector, reference);

    for (int i = 0; i < CHECKED && status == FLP_OK; i++) {
        float got = NAN;
        status = fetch(gpu, x->dtype, sums + (uint64_t)place(i, x->rows) * element_bytes(x->dtype), 1, &got);
        difference = hypot(difference, got - reference[i]);
        size = hypot(size, reference[i]);
    }
    *error = difference / size;
    return status == FLP_OK ? judge("a sum", *error, promised_error + rounding(x->dtype)) : status;
}

static flp_status compare_rows(const flp_gpu *gpu, const flp_gpu_matrix *outer, CUdeviceptr g, const float *w, float *row, double *error)
{
    const uint64_t bytes = element_bytes(outer->dtype);
    double difference = 0, size = 0;
    flp_status status = FLP_OK;

    for (int i = 0; i < CHECKED && status == FLP_OK; i++) {
        const int64_t r = place(i, outer->rows);
        float scale = NAN;
        status = fetch(gpu, outer->dtype, g + (uint64_t)r * bytes, 1, &scale);
        if (status == FLP_OK)
            status = fetch(gpu, outer->dtype, outer->data + (uint64_t)(r * outer->columns) * bytes, outer->columns, row);
        for (int64_t d = 0; d < outer->columns && status == FLP_OK; d++) {
            const double product = (double)scale * w[d];
            difference += (row[d] - product) * (row[d] - product);
            size += product * product;
        }
    }
    *error = sqrt(difference / size);
    return status;
}

flp_status flp_weighted_sum_check_outer(flp_gpu *gpu, const flp_gpu_matrix *g, const flp_gpu_matrix *w, const flp_gpu_matrix *outer, double *error)
{
    float *values = malloc(2 * (size_t)outer->columns * sizeof(*values));
    flp_status status = values ? fetch(gpu, w->dtype, w->data, outer->columns, values) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a row");

    if (status == FLP_OK)
        status = compare_rows(gpu, outer, g->data, values, values + outer->columns, error);
    free(values);
    return status == FLP_OK ? judge("a product", *error, rounding(outer->dtype)) : status;
}
