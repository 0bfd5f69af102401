/* Judges a case's gradients: guards and gaps, values against fp64.
 *
 * Tolerances. In norm, 1.05 times what must be: the error of the fp64 gradient rounded to the output's dtype, and beside it, as independent
 * errors add, the reference's estimate of what fp32 sums cost and of what rounding dlogit costs, with four standard deviations of its sum of
 * squares, which matters where few elements make up the norm (a square of variance s^2 has a deviation of sqrt(2) s^2). No single element
 * may be further off than eight times its own share of these. */
#include "gradient_cases.h"
#include "cpu/microkernel.h"
#include "base/dtype.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double slack = 1.05, deviations = 8, norm_deviations = 4;

typedef struct {
    char *text;
    size_t bytes;
} report;

__attribute__((format(printf, 2, 3))) static int reject(const report *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->text, to->bytes, format, arguments);
    va_end(arguments);
    return 0;
}

/* One gradient as it lies in memory, and as the reference has it. */
typedef struct {
    const char *name;
    const flp_case_buffer *buffer;
    const unsigned char *before;
    flp_dtype dtype;
    int adds;                          /* to what was there */
    int64_t rows, columns, stride;     /* in memory */
    int64_t row_factor, column_factor; /* element (row, column) is the reference's row * row_factor + column * column_factor */
    const flp_gradient *wanted;
} output;

/* Bytes before, between and behind the rows are as they were. */
static int check_untouched(const output *o, const report *to)
{
    int64_t size = flp_dtype_bytes(o->dtype);
    for (size_t i = 0; i < o->buffer->bytes; i++) {
        int64_t at = ((int64_t)i - (int64_t)o->buffer->offset) / size;
        int inside = i >= o->buffer->offset && at / o->stride < o->rows && at % o->stride < o->columns;
        if (!inside && o->buffer->base[i] != o->before[i])
            return reject(to, "%s: byte %td outside its rows was written", o->name, (ptrdiff_t)(i - o->buffer->offset));
    }
    return 1;
}

/* From value to the dtype's next number. */
static double unit_of(flp_dtype dtype, double value)
{
    int digits = dtype == FLP_F32 ? 24 : dtype == FLP_BF16 ? 8 : 11, least = dtype == FLP_F16 ? -14 : -126, exponent;
    frexp(value, &exponent);
    return ldexp(1, (exponent - 1 < least ? least + 1 : exponent) - digits);
}

typedef struct {
    double error, wanted, floor, estimate; /* sums of squares */
    double estimate_squared;               /* sum of fourth powers */
} norms;

static int check_element(const output *o, int64_t row, int64_t column, double dlogit_roundoff, norms *sums, const report *to)
{
    int64_t index = row * o->row_factor + column * o->column_factor, at = row * o->stride + column;
    double old = o->adds ? flp_reference_decode(o->dtype, o->before + o->buffer->offset, at) : 0;
    double got = flp_reference_decode(o->dtype, o->buffer->base + o->buffer->offset, at), want = o->wanted->value[index] + old;
    if (!isfinite(got) || !isfinite(want)) {
        if ((isnan(got) && isnan(want)) || got == want)
            return 1;
        return reject(to, "%s[%" PRId64 "][%" PRId64 "]: got %.9g, wanted %.9g", o->name, row, column, got, want);
    }
    double sum_rounding = o->wanted->rounding[index] + (o->adds ? 0x1p-24 * fabs(old) : 0);
    double dlogit_rounding = dlogit_roundoff / sqrt(3) * o->wanted->square[index];
    double estimate = sqrt(sum_rounding * sum_rounding + dlogit_rounding * dlogit_rounding);
    double unit = unit_of(o->dtype, want), floor = want - unit * nearbyint(want / unit), bound = deviations * estimate + unit / 2;
    if (fabs(got - want) > bound)
        return reject(to, "%s[%" PRId64 "][%" PRId64 "]: got %.9g, wanted %.9g within %.3g", o->name, row, column, got, want, bound);
    sums->error += (got - want) * (got - want);
    sums->wanted += want * want;
    sums->floor += floor * floor;
    sums->estimate += estimate * estimate;
    sums->estimate_squared += pow(estimate, 4);
    return 1;
}

static int check_values(const output *o, double dlogit_roundoff, const report *to)
{
    norms sums = { 0 };
    for (int64_t row = 0; row < o->rows; row++)
        for (int64_t column = 0; column < o->columns; column++)
            if (!check_element(o, row, column, dlogit_roundoff, &sums, to))
                return 0;
    double allowed = slack * sqrt(sums.floor + sums.estimate + norm_deviations * sqrt(2 * sums.estimate_squared));
    if (sqrt(sums.error) > allowed)
        return reject(to, "%s: error %.4g in norm, allowed %.4g (rounding to the dtype alone %.4g), of %.4g", o->name, sqrt(sums.error), allowed,
                      sqrt(sums.floor), sqrt(sums.wanted));
    return 1;
}

double flp_gradient_gpu_roundoff(flp_dtype dtype)
{
    return dtype == FLP_BF16 ? 0x1p-8 : dtype == FLP_F16 ? 0x1p-11 : 0;
}

double flp_gradient_cpu_roundoff(flp_dtype dtype)
{
    return flp_microkernel_of(dtype)->packed == 2 ? 0x1p-8 : 0;
}

int flp_gradient_case_check(const flp_gradient_case *c, const flp_gradient_case_data *data, const flp_gradient_reference *reference, double dlogit_roundoff,
                            char *message, size_t bytes)
{
    const flp_linear_logp_backward_problem *p = &c->problem;
    const flp_linear_logp_problem *forward = &p->forward;
    int columns = forward->weight_layout == FLP_HIDDEN_VOCAB;
    const output outputs[] = {
        { "grad_hidden", &data->own[FLP_GRADIENT_HIDDEN], data->before[FLP_GRADIENT_HIDDEN], p->grad_hidden, p->accumulate & FLP_ACCUMULATE_HIDDEN,
          forward->rows, forward->hidden, p->grad_hidden_stride, forward->hidden, 1, &reference->hidden },
        { "grad_weight", &data->own[FLP_GRADIENT_WEIGHT], data->before[FLP_GRADIENT_WEIGHT], p->grad_weight, p->accumulate & FLP_ACCUMULATE_WEIGHT,
          columns ? forward->hidden : forward->vocab, columns ? forward->vocab : forward->hidden, p->grad_weight_stride, columns ? 1 : forward->hidden,
          columns ? forward->hidden : 1, &reference->weight },
        { "grad_bias", &data->own[FLP_GRADIENT_BIAS], data->before[FLP_GRADIENT_BIAS], p->grad_bias, p->accumulate & FLP_ACCUMULATE_BIAS, 1, forward->vocab,
          forward->vocab, 0, 1, &reference->bias },
    };
    report to = { message, bytes };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        if (outputs[i].dtype == FLP_NONE)
            continue;
        if (!check_untouched(&outputs[i], &to) || !check_values(&outputs[i], dlogit_roundoff, &to))
            return 0;
    }
    return 1;
}

static int64_t blocks_of(const flp_gradient_case *c, const flp_plan *plan)
{
    const flp_linear_logp_problem *forward = &c->problem.forward;
    int is_filtered = c->problem.grad_filter_eps > 0 && flp_plan_backend(plan) == FLP_BACKEND_SM90A;
    return is_filtered ? (forward->rows + 63) / 64 * ((forward->vocab + 63) / 64) : 0;
}

int flp_gradient_case_check_filter(const flp_gradient_case *c, flp_plan *plan, char *message, size_t bytes)
{
    int64_t most = blocks_of(c, plan), blocks = -1, passed_over = -1;
    flp_status status = flp_plan_filter_statistics(plan, &blocks, &passed_over);
    int all = strstr(c->name, "all below") != NULL, some = strstr(c->name, "most below") != NULL, none = strstr(c->name, "nothing below") != NULL;
    /* Ignored rows leave fewer blocks. */
    int right = status == FLP_OK && (some ? blocks <= most : blocks == most) && (most == 0 || blocks > 0 || c->problem.forward.rows == 0) &&
                (!all || passed_over == blocks) && (!none || passed_over == 0) && (!some || most == 0 || (passed_over > 0 && passed_over < blocks));
    if (!right)
        snprintf(message, bytes, "filter: passed over %" PRId64 " of %" PRId64 " blocks, of at most %" PRId64, passed_over, blocks, most);
    return right;
}
