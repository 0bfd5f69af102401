/* Holds weighted_sum's outputs against fp64, and everything else against what it was. */
#include "weighted_sum_cases.h"
#include "base/dtype.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = { "x", "w", "g", "y", "grad_x", "grad_w" };

/* ---- rounding to a dtype, by arithmetic of our own ---- */

typedef struct {
    int digits; /* of the significand */
    int lowest; /* exponent of the least subnormal number */
    double largest;
} format;

static format format_of(flp_dtype dtype)
{
    switch (dtype) {
    case FLP_BF16:
        return (format){ 8, -133, 0x1.fep127 };
    case FLP_F16:
        return (format){ 11, -24, 65504 };
    default:
        return (format){ 24, -149, FLT_MAX };
    }
}

static double step_at(flp_dtype dtype, double value)
{
    format f = format_of(dtype);
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, exponent - f.digits > f.lowest ? exponent - f.digits : f.lowest);
}

static double round_to(flp_dtype dtype, double value)
{
    if (!isfinite(value) || value == 0)
        return value;
    double step = step_at(dtype, value), rounded = rint(value / step) * step;
    return fabs(rounded) > format_of(dtype).largest ? copysign(INFINITY, value) : rounded;
}

/* ---- what was made ---- */

/* An input, as it was before anything ran. */
static double input(const flp_weighted_data *data, flp_weighted_role role, flp_dtype dtype, int64_t at)
{
    return flp_reference_decode(dtype, data->before[role] + data->buffer[role].offset, at);
}

static double output(const flp_weighted_data *data, flp_weighted_role role, flp_dtype dtype, int64_t at)
{
    return flp_reference_decode(dtype, data->buffer[role].base + data->buffer[role].offset, at);
}

/* Every byte but those that the outputs own: of `written` rows of columns elements, stride apart. rows 0: nothing was to be written. */
static int is_intact(const flp_weighted_data *data, flp_weighted_role role, int64_t rows, int64_t columns, int64_t stride, int element, char *message,
                     size_t bytes)
{
    const flp_weighted_buffer *buffer = &data->buffer[role];
    size_t at = 0;
    if (buffer->base == NULL)
        return 1;
    for (int64_t i = 0; i <= rows; i++) {
        size_t end = i < rows ? buffer->offset + (size_t)(i * stride * element) : buffer->bytes;
        if (memcmp(buffer->base + at, data->before[role] + at, end - at) != 0) {
            snprintf(message, bytes, "%s was written outside its elements, before row %" PRId64, names[role], i);
            return 0;
        }
        at = end + (size_t)(columns * element);
    }
    return 1;
}

static int are_inputs_intact(const flp_weighted_data *data, int but_x, char *message, size_t bytes)
{
    for (int role = FLP_WEIGHTED_X; role <= FLP_WEIGHTED_G; role++)
        if (!(but_x && role == FLP_WEIGHTED_X) && !is_intact(data, role, 0, 0, 0, 1, message, bytes))
            return 0;
    return 1;
}

/* ---- sums ---- */

typedef struct {
    double value, magnitude; /* of the products */
} sum;

/* Whether got is value within what the order of additions and the last rounding allow. */
static int is_close(sum want, double got, int64_t depth, flp_dtype dtype, double *allowed)
{
    const double u = (double)depth * 0x1p-24;
    *allowed = u / (1 - u) * want.magnitude;
    if (isnan(want.value))
        return isnan(got);
    if (isinf(want.value))
        return got == want.value;
    *allowed += step_at(dtype, fabs(want.value) + *allowed) / 2;
    return fabs(got - want.value) <= *allowed;
}

static int report(char *message, size_t bytes, const char *what, int64_t at, double got, double want, double allowed)
{
    snprintf(message, bytes, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g", what, at, got, want, allowed);
    return 0;
}

int flp_weighted_case_check_sum(const flp_weighted_case *c, const flp_weighted_data *data, int64_t depth, char *message, size_t bytes)
{
    const flp_weighted_sum_problem *f = &c->problem.forward;
    const int element = flp_dtype_bytes(f->y_dtype);
    double allowed;
    for (int64_t i = 0; i < f->rows; i++) {
        sum want = { 0 };
        for (int64_t d = 0; d < f->columns; d++) {
            double product = input(data, FLP_WEIGHTED_X, f->dtype, i * f->x_stride + d) * input(data, FLP_WEIGHTED_W, f->w_dtype, d);
            want.value += product;
            want.magnitude += fabs(product);
        }
        double got = output(data, FLP_WEIGHTED_Y, f->y_dtype, i);
        if (!is_close(want, got, depth, f->y_dtype, &allowed))
            return report(message, bytes, "y", i, got, want.value, allowed);
    }
    return are_inputs_intact(data, 0, message, bytes) && is_intact(data, FLP_WEIGHTED_Y, f->rows, 1, 1, element, message, bytes);
}

static int check_grad_w(const flp_weighted_case *c, const flp_weighted_data *data, int64_t depth, char *message, size_t bytes)
{
    const flp_weighted_sum_backward_problem *p = &c->problem;
    const flp_weighted_sum_problem *f = &p->forward;
    double allowed;
    for (int64_t d = 0; d < f->columns; d++) {
        sum want = { 0 };
        for (int64_t i = 0; i < f->rows; i++) {
            double product = input(data, FLP_WEIGHTED_G, f->y_dtype, i) * input(data, FLP_WEIGHTED_X, f->dtype, i * f->x_stride + d);
            want.value += product;
            want.magnitude += fabs(product);
        }
        if (p->accumulate) {
            double old = input(data, FLP_WEIGHTED_GRAD_W, p->grad_w, d);
            want.value += old;
            want.magnitude += fabs(old);
        }
        double got = output(data, FLP_WEIGHTED_GRAD_W, p->grad_w, d);
        if (!is_close(want, got, depth, p->grad_w, &allowed))
            return report(message, bytes, "grad_w", d, got, want.value, allowed);
    }
    return 1;
}

static int check_grad_x(const flp_weighted_case *c, const flp_weighted_data *data, flp_weighted_role role, char *message, size_t bytes)
{
    const flp_weighted_sum_backward_problem *p = &c->problem;
    const flp_weighted_sum_problem *f = &p->forward;
    for (int64_t i = 0; i < f->rows; i++)
        for (int64_t d = 0; d < f->columns; d++) {
            double product = input(data, FLP_WEIGHTED_G, f->y_dtype, i) * input(data, FLP_WEIGHTED_W, f->w_dtype, d);
            double want = round_to(p->grad_x, round_to(FLP_F32, product));
            double got = output(data, role, p->grad_x, i * p->grad_x_stride + d);
            if (got != want && !(isnan(got) && isnan(want)))
                return report(message, bytes, "grad_x", i * f->columns + d, got, want, 0);
        }
    return is_intact(data, role, f->rows, f->columns, p->grad_x_stride, flp_dtype_bytes(p->grad_x), message, bytes);
}

int flp_weighted_case_check_gradients(const flp_weighted_case *c, const flp_weighted_data *data, int64_t depth, char *message, size_t bytes)
{
    const flp_weighted_sum_backward_problem *p = &c->problem;
    const int in_place = (c->content & FLP_WEIGHTED_IN_PLACE) != 0;
    if (!are_inputs_intact(data, in_place, message, bytes))
        return 0;
    if (p->grad_x != FLP_NONE && !check_grad_x(c, data, in_place ? FLP_WEIGHTED_X : FLP_WEIGHTED_GRAD_X, message, bytes))
        return 0;
    if (p->grad_w == FLP_NONE)
        return 1;
    return check_grad_w(c, data, depth, message, bytes) &&
           is_intact(data, FLP_WEIGHTED_GRAD_W, p->forward.columns, 1, 1, flp_dtype_bytes(p->grad_w), message, bytes);
}
