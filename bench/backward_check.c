/* Checks rows of gradients against fp64. A gradient's row is a row of derivatives by the logits, times a matrix: the device computes the logits in fp64, the
 * host the derivatives from them, and the device the product. */
#include "backward_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "reference.h"

enum { CHECKED = FLP_BACKWARD_CHECKED };

/* The standard deviation of rounding to bf16, relative to a number at the low end of its binade; tests/gradient_check.c has the same
 * allowance. */
static const double derivative_rounding = 0x1p-8 / 1.7320508075688772, slack = 1.05;

/* A derivative below filter_slack * eps may have been below eps for the filter, which compares the derivative's fp32 value. */
static const double filter_slack = 1.01;

/* One of the two gradients. */
typedef struct {
    const flp_backward_answer *answer;
    int by_hidden;             /* 1: grad_hidden; 0: grad_weight */
    flp_gpu_matrix from, with; /* the matrix that the gradient is of; the one that derivatives are multiplied with */
    int64_t rows[CHECKED];
    double *derivatives, *below; /* [CHECKED, with.rows]; below: those that the filter may pass over, else 0 */
    double *sums, *squares;      /* [CHECKED, columns]: the gradient; the sum of its terms' squares */
    double *passed, *bound;      /* [CHECKED, columns]: sums of the |terms| that the filter may pass over; the bound that it promises for them */
    CUdeviceptr left;            /* [CHECKED, with.rows] fp64 */
    flp_gpu_product product;
    flp_dtype dtype; /* of the gradient */
    void *got;       /* [columns] */
    char *all;       /* the whole gradient, where its rows are columns in memory; else NULL */
} gradient;

/* The derivative of the loss by a logit. logit: before the softcap and the temperature. */
static double derivative(const flp_backward_answer *answer, int64_t row, int64_t entry, double logit)
{
    const double cap = answer->softcap, tangent = cap > 0 ? tanh(logit / cap) : 0, capped = cap > 0 ? cap * tangent : logit;
    const double temperature = answer->temperatures ? answer->temperatures[row] : 1, p = exp(capped / temperature - (double)answer->lse[row]);

    return (double)answer->g[row] / temperature * ((answer->targets[row] == entry ? 1 : 0) - p) * (1 - tangent * tangent);
}

/* Replaces the logits in g->derivatives by the derivatives. */
static void differentiate(gradient *g)
{
    for (int i = 0; i < CHECKED; i++)
        for (int64_t j = 0; j < g->with.rows; j++) {
            double *at = &g->derivatives[i * g->with.rows + j];
            *at = g->by_hidden ? derivative(g->answer, g->rows[i], j, *at) : derivative(g->answer, j, g->rows[i], *at);
        }
}

static size_t left_bytes(const gradient *g)
{
    return (size_t)(CHECKED * g->with.rows) * sizeof(double);
}

static size_t product_bytes(const gradient *g)
{
    return (size_t)(CHECKED * g->with.columns) * sizeof(double);
}

static flp_status allocate_on_device(gradient *g)
{
    CUdeviceptr *const outputs[] = { &g->product.sums, &g->product.squares, &g->product.magnitudes };
    flp_status status = flp_gpu_allocate(g->answer->gpu, left_bytes(g), &g->left);

    for (int i = 0; i < 3 && status == FLP_OK; i++)
        status = flp_gpu_allocate(g->answer->gpu, product_bytes(g), outputs[i]);
    return status;
}

/* The product of left with the gradient's other matrix, on the device. */
static flp_status multiply(gradient *g, const double *left)
{
    flp_status status = flp_gpu_upload(g->answer->gpu, g->left, left, left_bytes(g));

    return status == FLP_OK ? flp_gpu_kernels_product(g->answer->gpu, g->answer->kernels, g->left, &g->with, CHECKED, &g->product) : status;
}

/* magnitudes: sums of the |terms| that the filter may pass over: with their own derivatives or, with `whole`, with eps in the place of each, as the filter
 * promises. */
static flp_status compute_below(gradient *g, int whole, double *magnitudes)
{
    const double eps = g->answer->filter_eps;
    flp_status status;

    for (int64_t i = 0; i < CHECKED * g->with.rows; i++) {
        const double size = fabs(g->derivatives[i]);
        g->below[i] = size < filter_slack * eps ? (whole ? eps : size) : 0;
    }
    status = multiply(g, g->below);
    return status == FLP_OK ? flp_gpu_download(g->answer->gpu, magnitudes, g->product.magnitudes, product_bytes(g)) : status;
}

static flp_status compute(gradient *g)
{
    flp_gpu *gpu = g->answer->gpu;
    CUdeviceptr rows;
    flp_status status = flp_gpu_copy_in(gpu, g->rows, sizeof(g->rows), &rows);

    if (status == FLP_OK)
        status = allocate_on_device(g);
    if (status == FLP_OK)
        status = flp_gpu_kernels_logits(gpu, g->answer->kernels, &g->from, &g->with, rows, CHECKED, g->left);
    if (status == FLP_OK)
        status = flp_gpu_download(gpu, g->derivatives, g->left, left_bytes(g));
    if (status != FLP_OK)
        return status;
    differentiate(g);
    status = multiply(g, g->derivatives);
    if (status == FLP_OK)
        status = flp_gpu_download(gpu, g->sums, g->product.sums, product_bytes(g));
    if (status == FLP_OK)
        status = flp_gpu_download(gpu, g->squares, g->product.squares, product_bytes(g));
    if (status != FLP_OK || g->answer->filter_eps == 0)
        return status;
    status = compute_below(g, 0, g->passed);
    return status == FLP_OK ? compute_below(g, 1, g->bound) : status;
}

/* The error of rounding value, which is far above the smallest bf16, to the nearest bf16. */
static double rounding_error(double value)
{
    int exponent;

    frexp(value, &exponent);
    return value - ldexp(nearbyint(ldexp(value, 8 - exponent)), exponent - 8);
}

/* Sums of squares over a row. */
typedef struct {
    double size, difference, rounded, estimate, passed, bound;
} norms;

static norms compare_row(const gradient *g, int i)
{
    norms sums = { 0 };

    for (int64_t c = 0; c < g->with.columns; c++) {
        const int64_t at = i * g->with.columns + c;
        const double want = g->sums[at];
        sums.size += want * want;
        sums.difference += pow(flp_reference_decode(g->dtype, g->got, c) - want, 2);
        sums.rounded += g->dtype != FLP_F32 ? pow(rounding_error(want), 2) : 0;
        sums.estimate += derivative_rounding * derivative_rounding * g->squares[at];
        sums.passed += g->passed[at] * g->passed[at];
        sums.bound += g->bound[at] * g->bound[at];
    }
    return sums;
}

/* Without a filter each row is divided by its size, so that rows with few large terms do not decide alone. With a filter all rows count as one vector: of
 * grad_weight's row of a rare entry, next to nothing need be left. */
static void add_row(const gradient *g, const norms *row, norms *sums)
{
    const double scale = g->answer->filter_eps > 0 ? 1 : 1 / row->size;

    sums->size += scale * row->size;
    sums->difference += scale * row->difference;
    sums->rounded += scale * row->rounded;
    sums->estimate += scale * row->estimate;
    sums->passed += scale * row->passed;
    sums->bound += scale * row->bound;
}

static flp_status fetch_all(gradient *g, CUdeviceptr gradient_data)
{
    const size_t bytes = (size_t)(g->from.rows * g->from.columns) * (size_t)flp_dtype_bytes(g->dtype);

    g->all = malloc(bytes);
    return g->all ? flp_gpu_download(g->answer->gpu, g->all, gradient_data, bytes) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a gradient");
}

/* Fetches row r of the gradient, which has the layout of `from`. */
static flp_status fetch_row(gradient *g, int64_t r)
{
    const CUdeviceptr data = g->by_hidden ? g->answer->grad_hidden : g->answer->grad_weight;
    const size_t bytes = (size_t)flp_dtype_bytes(g->dtype), step = (size_t)g->from.column_stride * bytes;
    flp_status status = FLP_OK;

    if (g->from.column_stride == 1)
        return flp_gpu_download(g->answer->gpu, g->got, data + (uint64_t)(r * g->from.row_stride) * bytes, (size_t)g->from.columns * bytes);
    if (!g->all)
        status = fetch_all(g, data);
    for (int64_t c = 0; c < g->from.columns && status == FLP_OK; c++)
        memcpy((char *)g->got + (size_t)c * bytes, g->all + (size_t)r * bytes + (size_t)c * step, bytes);
    return status;
}

static flp_status compare(gradient *g, flp_gradient_error *error)
{
    norms sums = { 0 };
    double allowed, size = 0, difference = 0; /* of all rows as one vector */

    for (int i = 0; i < CHECKED; i++) {
        flp_status status = fetch_row(g, g->rows[i]);
        norms row;
        if (status != FLP_OK)
            return status;
        row = compare_row(g, i);
        add_row(g, &row, &sums);
        size += row.size;
        difference += row.difference;
    }
    *error = (flp_gradient_error){ sqrt(sums.difference / sums.size), sqrt(difference / size), sqrt(sums.rounded / sums.size), sqrt(sums.bound / sums.size) };
    allowed = slack * sqrt((sums.rounded + sums.estimate) / sums.size) + sqrt(sums.passed / sums.size);
    if (error->relative <= allowed)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "%s: relative error %.3g against fp64, allowed %.3g", g->by_hidden ? "grad_hidden" : "grad_weight", error->relative,
                           allowed);
}

/* Chooses evenly spaced rows. Every other one of grad_weight is the row of a target, where one term outweighs the others. */
static void choose_rows(gradient *g)
{
    for (int i = 0; i < CHECKED; i++) {
        g->rows[i] = i * (g->from.rows - 1) / (CHECKED - 1);
        if (!g->by_hidden && i % 2)
            g->rows[i] = g->answer->targets[i * (g->with.rows - 1) / (CHECKED - 1)];
    }
}

static flp_status allocate_on_host(gradient *g)
{
    const size_t left = CHECKED * (size_t)g->with.rows, columns = (size_t)g->with.columns;
    const struct {
        size_t count;
        double **array;
    } all[] = {
        { left, &g->derivatives },         { left, &g->below },
        { CHECKED * columns, &g->sums },   { CHECKED * columns, &g->squares },
        { CHECKED * columns, &g->passed }, { CHECKED * columns, &g->bound },
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!(*all[i].array = calloc(all[i].count, sizeof(double))))
            return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the gradients' check");
    g->got = malloc(columns * (size_t)flp_dtype_bytes(g->dtype));
    return g->got ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the gradients' check");
}

static flp_status check(gradient *g, flp_gradient_error *error)
{
    flp_status status = allocate_on_host(g);

    choose_rows(g);
    if (status == FLP_OK)
        status = compute(g);
    if (status == FLP_OK)
        status = compare(g, error);
    free(g->derivatives);
    free(g->below);
    free(g->sums);
    free(g->squares);
    free(g->passed);
    free(g->bound);
    free(g->got);
    free(g->all);
    return status;
}

flp_status flp_backward_check(const flp_backward_answer *answer, flp_backward_errors *errors)
{
    gradient hidden = { .answer = answer, .by_hidden = 1, .dtype = answer->hidden_dtype, .from = answer->hidden, .with = answer->weight };
    gradient weight = { .answer = answer, .by_hidden = 0, .dtype = answer->weight_dtype, .from = answer->weight, .with = answer->hidden };
    flp_status status;

    if (answer->hidden_dtype == FLP_NONE)
        return flp_status_fail(FLP_BAD_ARGUMENT, "hidden_dtype: got FLP_NONE, wanted that of grad_hidden");
    status = check(&hidden, &errors->hidden);
    errors->weight = (flp_gradient_error){ 0 };
    return status == FLP_OK && answer->weight_dtype != FLP_NONE ? check(&weight, &errors->weight) : status;
}
