/* A gradient's row is a row of derivatives by the logits times a matrix: the host computes the first from fp64 logits, the device the
 * product. */
#include "backward_check.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "reference.h"

enum { CHECKED = FLP_BACKWARD_CHECKED };

/* Of rounding to bf16, the standard deviation relative to a number at the low end of its binade; tests/gradient_check.c has the same
 * allowance. */
static const double derivative_rounding = 0x1p-8 / 1.7320508075688772, slack = 1.05;

/* One of the two gradients. */
typedef struct {
    const flp_backward_answer *answer;
    int by_hidden;                     /* rows of grad_hidden; else of grad_weight */
    flp_gpu_matrix from, with;         /* the rows' own matrix; the one that they are multiplied with */
    int64_t rows[CHECKED];
    double *derivatives;               /* [CHECKED, with.rows] */
    double *sums, *squares;            /* [CHECKED, columns]: the gradient; the sum of its terms' squares */
    flp_dtype dtype;                   /* of the gradient */
    void *got;                         /* [columns] */
} gradient;

static double derivative(const flp_backward_answer *answer, int64_t row, int64_t entry, double logit)
{
    return (double)answer->g[row] * ((answer->targets[row] == entry ? 1 : 0) - exp(logit - (double)answer->lse[row]));
}

/* derivatives: from the logits that it holds. */
static void differentiate(gradient *g)
{
    for (int i = 0; i < CHECKED; i++)
        for (int64_t j = 0; j < g->with.rows; j++) {
            double *at = &g->derivatives[i * g->with.rows + j];
            *at = g->by_hidden ? derivative(g->answer, g->rows[i], j, *at) : derivative(g->answer, j, g->rows[i], *at);
        }
}

static flp_status compute(gradient *g)
{
    flp_gpu *gpu = g->answer->gpu;
    const size_t bytes = (size_t)(CHECKED * g->with.rows) * sizeof(double), out_bytes = (size_t)(CHECKED * g->with.columns) * sizeof(double);
    CUdeviceptr rows, derivatives, sums, squares;
    flp_status status = flp_gpu_copy_in(gpu, g->rows, sizeof(g->rows), &rows);

    if (status == FLP_OK)
        status = flp_gpu_allocate(gpu, bytes, &derivatives);
    if (status == FLP_OK)
        status = flp_gpu_allocate(gpu, out_bytes, &sums);
    if (status == FLP_OK)
        status = flp_gpu_allocate(gpu, out_bytes, &squares);
    if (status == FLP_OK)
        status = flp_gpu_kernels_logits(gpu, g->answer->kernels, &g->from, &g->with, rows, CHECKED, derivatives);
    if (status == FLP_OK)
        status = flp_gpu_download(gpu, g->derivatives, derivatives, bytes);
    if (status != FLP_OK)
        return status;
    differentiate(g);
    status = flp_gpu_upload(gpu, derivatives, g->derivatives, bytes);
    if (status == FLP_OK)
        status = flp_gpu_kernels_product(gpu, g->answer->kernels, derivatives, &g->with, CHECKED, sums, squares);
    if (status == FLP_OK)
        status = flp_gpu_download(gpu, g->sums, sums, out_bytes);
    return status == FLP_OK ? flp_gpu_download(gpu, g->squares, squares, out_bytes) : status;
}

/* Of value in the nearest bf16, far from its smallest ones. */
static double rounding_error(double value)
{
    int exponent;

    frexp(value, &exponent);
    return value - ldexp(nearbyint(ldexp(value, 8 - exponent)), exponent - 8);
}

/* Sums over a row, of squares. */
typedef struct {
    double size, difference, rounded, estimate;
} norms;

static norms compare_row(const gradient *g, int i)
{
    norms sums = { 0 };

    for (int64_t c = 0; c < g->with.columns; c++) {
        const double want = g->sums[i * g->with.columns + c];
        sums.size += want * want;
        sums.difference += pow(flp_reference_decode(g->dtype, g->got, c) - want, 2);
        sums.rounded += g->dtype == FLP_BF16 ? pow(rounding_error(want), 2) : 0;
        sums.estimate += derivative_rounding * derivative_rounding * g->squares[i * g->with.columns + c];
    }
    return sums;
}

/* In the mean over rows, so that those with few large terms do not decide alone. */
static flp_status compare(gradient *g, double *error, double *rounding)
{
    const CUdeviceptr all = g->by_hidden ? g->answer->grad_hidden : g->answer->grad_weight;
    const int64_t columns = g->with.columns;
    const size_t bytes = (size_t)flp_dtype_bytes(g->dtype);
    double difference = 0, rounded = 0, estimate = 0, allowed;

    for (int i = 0; i < CHECKED; i++) {
        flp_status status = flp_gpu_download(g->answer->gpu, g->got, all + (uint64_t)(g->rows[i] * columns) * bytes, (size_t)columns * bytes);
        norms sums;
        if (status != FLP_OK)
            return status;
        sums = compare_row(g, i);
        difference += sums.difference / sums.size / CHECKED;
        rounded += sums.rounded / sums.size / CHECKED;
        estimate += sums.estimate / sums.size / CHECKED;
    }
    *error = sqrt(difference);
    *rounding = sqrt(rounded);
    allowed = slack * sqrt(rounded + estimate);
    if (*error <= allowed)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "%s: relative error %.3g against fp64, allowed %.3g", g->by_hidden ? "grad_hidden" : "grad_weight",
                           *error, allowed);
}

/* Evenly spaced; every other one of grad_weight is a target's, where one term outweighs the others. */
static void choose_rows(gradient *g)
{
    for (int i = 0; i < CHECKED; i++) {
        g->rows[i] = i * (g->from.rows - 1) / (CHECKED - 1);
        if (!g->by_hidden && i % 2)
            g->rows[i] = g->answer->targets[i * (g->with.rows - 1) / (CHECKED - 1)];
    }
}

static flp_status check(gradient *g, double *error, double *rounding)
{
    const size_t columns = (size_t)g->with.columns;
    flp_status status = FLP_OK;

    choose_rows(g);
    g->derivatives = malloc(CHECKED * (size_t)g->with.rows * sizeof(double));
    g->sums = malloc(CHECKED * columns * sizeof(double));
    g->squares = malloc(CHECKED * columns * sizeof(double));
    g->got = malloc(columns * (size_t)flp_dtype_bytes(g->dtype));
    if (!g->derivatives || !g->sums || !g->squares || !g->got)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the gradients' check");
    if (status == FLP_OK)
        status = compute(g);
    if (status == FLP_OK)
        status = compare(g, error, rounding);
    free(g->derivatives);
    free(g->sums);
    free(g->squares);
    free(g->got);
    return status;
}

flp_status flp_backward_check(const flp_backward_answer *answer, flp_backward_errors *errors)
{
    gradient hidden = { .answer = answer, .by_hidden = 1, .dtype = FLP_BF16, .from = answer->hidden, .with = answer->weight };
    gradient weight = { .answer = answer, .by_hidden = 0, .dtype = answer->weight_dtype, .from = answer->weight, .with = answer->hidden };
    flp_status status = check(&hidden, &errors->hidden, &errors->hidden_rounding);

    return status == FLP_OK ? check(&weight, &errors->weight, &errors->weight_rounding) : status;
}
