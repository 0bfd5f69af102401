/* The host converts the rows to fp32, multiplies them and rounds the products to x's dtype. */
#include "scale_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cpu/convert.h"

/* Elements that are converted at a time. */
enum { LINE = 1024 };

typedef struct {
    double difference, size; /* sums of squares */
} sums;

static size_t row_bytes(const flp_gpu_matrix *x)
{
    return (size_t)x->columns * (size_t)flp_dtype_bytes(x->dtype);
}

static int64_t place(int i, int64_t rows)
{
    return i * (rows - 1) / (FLP_SCALE_CHECKED - 1);
}

flp_status flp_scale_check_fetch(const flp_gpu *gpu, const flp_gpu_matrix *x, void **rows)
{
    const size_t bytes = row_bytes(x);
    flp_status status = FLP_OK;

    *rows = malloc(FLP_SCALE_CHECKED * bytes);
    if (!*rows)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the rows to check");
    for (int i = 0; i < FLP_SCALE_CHECKED && status == FLP_OK; i++)
        status = flp_gpu_download(gpu, (char *)*rows + (size_t)i * bytes, x->data + (uint64_t)place(i, x->rows) * bytes, bytes);
    return status;
}

/* before, after: count elements, at most LINE. Returns the first element that is wrong, or count. */
static size_t compare_line(flp_dtype dtype, const char *before, const char *after, size_t count, float factor, sums *total)
{
    const size_t bytes = (size_t)flp_dtype_bytes(dtype);
    float given[LINE], got[LINE], products[LINE];
    char wanted[LINE * sizeof(float)];

    flp_convert_to_f32(dtype, before, given, count);
    flp_convert_to_f32(dtype, after, got, count);
    for (size_t i = 0; i < count; i++) {
        const double exact = (double)given[i] * factor;
        products[i] = given[i] * factor;
        total->difference += (got[i] - exact) * (got[i] - exact);
        total->size += exact * exact;
    }
    flp_convert_from_f32(dtype, products, wanted, count);
    for (size_t i = 0; i < count; i++)
        if (memcmp(after + i * bytes, wanted + i * bytes, bytes) != 0)
            return i;
    return count;
}

static flp_status compare(const flp_gpu_matrix *x, const char *before, const char *after, float factor, double *error)
{
    const size_t bytes = (size_t)flp_dtype_bytes(x->dtype), all = FLP_SCALE_CHECKED * (size_t)x->columns, columns = (size_t)x->columns;
    sums total = { 0 };

    for (size_t at = 0; at < all; at += LINE) {
        const size_t count = all - at < LINE ? all - at : LINE,
                     wrong = at + compare_line(x->dtype, before + at * bytes, after + at * bytes, count, factor, &total);
        if (wrong < at + count)
            return flp_status_fail(FLP_INTERNAL, "x: row %lld, column %zu is not the product of what it was and %g, rounded once",
                                   (long long)place((int)(wrong / columns), x->rows), wrong % columns, factor);
    }
    *error = sqrt(total.difference / total.size);
    return FLP_OK;
}

flp_status flp_scale_check(const flp_gpu *gpu, const flp_gpu_matrix *x, const void *rows, float factor, double *error)
{
    void *after = NULL;
    flp_status status = flp_scale_check_fetch(gpu, x, &after);

    if (status == FLP_OK)
        status = compare(x, rows, after, factor, error);
    free(after);
    return status;
}
