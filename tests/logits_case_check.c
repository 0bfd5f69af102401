/* Whether what a path of logits_logp has written is right, and nothing else has changed. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "logits_cases.h"
#include "base/dtype.h"

enum { OUTPUT_FILL = 0xc5, INPUT_FILL = 0xff };

typedef struct {
    const flp_logits_case *c;
    const flp_logits_data *data;
    const flp_logits_wanted *wanted;
    char *message;
    size_t bytes;
} check;

static const void *data_of(const check *check, flp_logits_role role)
{
    const flp_logits_buffer *buffer = &check->data->buffer[role];

    return buffer->base ? buffer->base + buffer->offset : NULL;
}

static int is_filled(const void *at, size_t bytes, unsigned char fill)
{
    const unsigned char *byte = at;

    for (size_t i = 0; i < bytes; i++)
        if (byte[i] != fill)
            return 0;
    return 1;
}

static int alike(double got, double want, double allowed)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    return isinf(want) ? got == want : fabs(got - want) <= allowed;
}

static int check_values(check *check, flp_logits_role role, const char *name, const double *want, const double *rounding)
{
    const float *got = data_of(check, role);

    for (int64_t i = 0; got && i < check->wanted->rows; i++) {
        const double allowed = rounding[i] + fabs(want[i]) * 0x1p-23;
        if (check->wanted->written[i] && role == FLP_LOGITS_ENTROPY && got[i] < 0) {
            snprintf(check->message, check->bytes, "%s[%lld]: got %.9g, wanted no less than 0", name, (long long)i, got[i]);
            return 0;
        }
        if (!check->wanted->written[i] ? is_filled(&got[i], sizeof(float), OUTPUT_FILL) : alike(got[i], want[i], allowed))
            continue;
        snprintf(check->message, check->bytes, "%s[%lld]: got %.9g, wanted %.9g within %.3g%s", name, (long long)i, got[i], want[i], allowed,
                 check->wanted->written[i] ? "" : " (no row writes it)");
        return 0;
    }
    return 1;
}

static int check_argmax(check *check)
{
    const int32_t *got = data_of(check, FLP_LOGITS_ARGMAX);

    for (int64_t i = 0; got && i < check->wanted->rows; i++) {
        const int64_t want = check->wanted->argmax[i];
        if (!check->wanted->written[i] ? is_filled(&got[i], 4, OUTPUT_FILL) : want < 0 ? got[i] >= 0 && got[i] < check->c->problem.vocab : got[i] == want)
            continue;
        snprintf(check->message, check->bytes, "argmax[%lld]: got %d, wanted %lld", (long long)i, got[i], (long long)want);
        return 0;
    }
    return 1;
}

/* Half an ulp of the dtype, its subnormals included. Encoding cuts: the next value below is at most one ulp off. */
static double dtype_rounding(flp_dtype dtype, double want)
{
    const double relative = dtype == FLP_BF16 ? 0x1p-8 : dtype == FLP_F16 ? 0x1p-11 : 0x1p-24;
    const double least = dtype == FLP_BF16 ? 0x1p-134 : dtype == FLP_F16 ? 0x1p-25 : 0x1p-150;

    return fabs(want) * relative + least;
}

/* What lies behind a row's vocabulary: as it was, in place the logits' gap, else the poison. */
static int check_gap(check *check, flp_logits_form form, const unsigned char *row, int element)
{
    const int64_t vocab = check->c->problem.vocab, gap = check->c->problem.logits_stride - vocab;

    return is_filled(row + vocab * element, (size_t)(gap * element), form == FLP_LOGITS_IN_PLACE ? INPUT_FILL : OUTPUT_FILL);
}

/* What is rounded to infinity. */
static double in_range(flp_dtype dtype, double value)
{
    return dtype == FLP_F16 && fabs(value) >= 65520 ? copysign(INFINITY, value) : value;
}

static int check_gradient_row(check *check, flp_logits_form form, const unsigned char *row, int64_t i)
{
    const flp_dtype dtype = check->c->problem.dtype;
    const int64_t vocab = check->c->problem.vocab;

    for (int64_t v = 0; v < vocab; v++) {
        const double want = in_range(dtype, check->wanted->gradient[i * vocab + v]), got = flp_reference_decode(dtype, row, v);
        const double given = form == FLP_LOGITS_BACKWARD ? check->wanted->given_rounding[i * vocab + v] : 0;
        const double allowed = (check->wanted->gradient_rounding[i * vocab + v] + given) * 1.01 + dtype_rounding(dtype, want);
        if (alike(got, want, allowed))
            continue;
        snprintf(check->message, check->bytes, "grad_logits[%lld][%lld]: got %.9g, wanted %.9g within %.3g", (long long)i, (long long)v, got, want, allowed);
        return 0;
    }
    return 1;
}

static int check_gradients(check *check, flp_logits_form form)
{
    const int element = flp_dtype_bytes(check->c->problem.dtype);
    const size_t row_bytes = (size_t)(check->c->problem.logits_stride * element);
    const unsigned char *gradients = data_of(check, FLP_LOGITS_GRAD), *logits = data_of(check, FLP_LOGITS_LOGITS);

    for (int64_t i = 0; i < check->wanted->rows; i++) {
        const unsigned char *row = gradients + (size_t)i * row_bytes;
        const int untouched =
            form == FLP_LOGITS_IN_PLACE ? memcmp(row, logits + (size_t)i * row_bytes, row_bytes) == 0 : is_filled(row, row_bytes, OUTPUT_FILL);
        if (check->wanted->written[i] ? !check_gradient_row(check, form, row, i) : !untouched) {
            if (!check->wanted->written[i])
                snprintf(check->message, check->bytes, "grad_logits[%lld] was written, which no row of the call is", (long long)i);
            return 0;
        }
        if (check->wanted->written[i] && !check_gap(check, form, row, element)) {
            snprintf(check->message, check->bytes, "grad_logits[%lld]: what lies behind the vocabulary was written", (long long)i);
            return 0;
        }
    }
    return 1;
}

static int check_guards(check *check)
{
    for (int role = 0; role < FLP_LOGITS_ROLES; role++) {
        const flp_logits_buffer *buffer = &check->data->buffer[role];
        const unsigned char fill = role < FLP_LOGITS_LOGP ? INPUT_FILL : OUTPUT_FILL;
        const size_t end = buffer->offset + buffer->data_bytes;
        if (!buffer->base || (is_filled(buffer->base, buffer->offset, fill) && is_filled(buffer->base + end, buffer->bytes - end, fill)))
            continue;
        snprintf(check->message, check->bytes, "memory beside buffer %d was written", role);
        return 0;
    }
    return 1;
}

int flp_logits_case_check(const flp_logits_case *c, const flp_logits_data *data, const flp_logits_wanted *wanted, flp_logits_form form, char *message,
                          size_t bytes)
{
    check check = { c, data, wanted, message, bytes };

    snprintf(message, bytes, "%s", "");
    if (!check_guards(&check))
        return 0;
    if (form != FLP_LOGITS_BACKWARD && !(check_values(&check, FLP_LOGITS_LOGP, "logp", wanted->logp, wanted->logp_rounding) &&
                                         check_values(&check, FLP_LOGITS_LSE, "lse", wanted->lse, wanted->lse_rounding) &&
                                         check_values(&check, FLP_LOGITS_ENTROPY, "entropy", wanted->entropy, wanted->entropy_rounding)))
        return 0;
    return form == FLP_LOGITS_FORWARD ? check_argmax(&check) : check_gradients(&check, form);
}
