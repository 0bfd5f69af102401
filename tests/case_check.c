/* Judges a case's outputs: guards, values against fp64, argmax.
 *
 * Tolerances. The promise is a relative error of 1e-6 in norm over the rows; where the reference's estimate of what fp32
 * accumulation costs (flp_reference.rounding) is larger, because D is large, logits are shifted or logp is near 0, that
 * estimate counts. No single row may be further off than eight times its own estimate: a row whose error is hidden by a
 * few hundred good ones. */
#include "cases.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double promised = 1e-6, deviations = 8;
static const unsigned char output_fill = 0xc5;

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

static int check_guards(const char *name, const flp_case_buffer *buffer, const report *to)
{
    for (size_t i = 0; i < buffer->bytes; i++) {
        int inside = i >= buffer->offset && i < buffer->offset + buffer->data_bytes;
        if (!inside && buffer->base[i] != output_fill)
            return reject(to, "%s: byte %td before or behind it was written", name, (ptrdiff_t)(i - buffer->offset));
    }
    return 1;
}

static double norm(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            sum += values[i] * values[i];
    return sqrt(sum);
}

static int check_values(const char *name, const float *got, const double *want, const double *rounding, int64_t rows, const report *to)
{
    flp_reference_error error;
    flp_reference_compare(got, want, rows, &error);
    int64_t i = error.unlike_at;
    if (i >= 0)
        return reject(to, "%s[%" PRId64 "]: got %.9g, wanted %.9g", name, i, got[i], want[i]);
    double allowed = fmax(promised * norm(want, rows), norm(rounding, rows));
    i = error.largest_at;
    if (error.norm > allowed)
        return reject(to, "%s: error %.3g in norm (%.3g relative), allowed %.3g; worst [%" PRId64 "]: got %.9g, wanted %.9g", name, error.norm, error.relative,
                      allowed, i, got[i], want[i]);
    for (i = 0; i < rows; i++) {
        double bound = deviations * (rounding[i] + ldexp(fabs(want[i]), -24));
        if (isfinite(want[i]) && fabs(got[i] - want[i]) > bound)
            return reject(to, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g", name, i, got[i], want[i], bound);
    }
    return 1;
}

/* What is promised of logp however likely the target is, and of the entropy beside a likely one, twice that: a relative error of 2e-6 beyond what
 * rounding the logits to fp32 costs. */
static int check_likely(const char *name, const flp_case *c, const float *got, const double *want, const flp_reference *reference, double times,
                        const report *to)
{
    for (int64_t i = 0; c->margin > 0 && i < reference->rows; i++) {
        double allowed = times * (2e-6 + 0x1p-23 * reference->largest[i]) * fabs(want[i]) + FLT_MIN;
        int counts = want == reference->logp || reference->logp[i] > -0.5;
        if (counts && isfinite(want[i]) && !(fabs(got[i] - want[i]) <= allowed))
            return reject(to, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g, for its digits", name, i, got[i], want[i], allowed);
    }
    return 1;
}

/* logp is never above 0, and exactly 0 in an ignored row. */
static int check_sign(const flp_case *c, const flp_case_data *data, const float *logp, const report *to)
{
    flp_linear_logp_args args;
    flp_case_args(c, data, NULL, &args);
    for (int64_t i = 0; i < args.rows; i++) {
        int64_t target = c->problem.target_dtype == FLP_I32 ? ((const int32_t *)args.target)[i] : ((const int64_t *)args.target)[i];
        if (logp[i] > 0)
            return reject(to, "logp[%" PRId64 "]: got %.9g, which is above 0", i, logp[i]);
        if (flp_reference_ignores(args.flags, args.ignore_index, target) && logp[i] != 0)
            return reject(to, "logp[%" PRId64 "]: got %.9g, wanted 0: the row is ignored", i, logp[i]);
    }
    return 1;
}

/* The entropy of finite logits is 0 .. log(V), whose own rounding to fp32 is allowed; with V = 1, that of the two logarithms whose difference it is. */
static int check_range(const flp_case *c, const float *entropy, int64_t rows, const report *to)
{
    float largest = (float)log((double)c->problem.vocab) * (1 + 0x1p-20f) + 0x1p-22f;
    for (int64_t i = 0; i < rows; i++)
        if (entropy[i] < 0 || entropy[i] > largest)
            return reject(to, "entropy[%" PRId64 "]: got %.9g, wanted 0 .. log(V) = %.9g", i, entropy[i], largest);
    return 1;
}

/* The smallest index of the largest logit; where the case's logits are not exact in fp32, one whose logit rounding may have put first. */
static int check_argmax(const flp_case *c, const int32_t *got, const flp_reference *reference, const report *to)
{
    for (int64_t i = 0; i < reference->rows; i++) {
        int64_t want = reference->argmax[i];
        if (got[i] < 0 || got[i] >= reference->vocab)
            return reject(to, "argmax[%" PRId64 "]: got %d, wanted 0 .. %" PRId64, i, got[i], reference->vocab - 1);
        if (want < 0 || got[i] == want)
            continue;
        const double *logits = reference->logits + i * reference->vocab;
        double behind = logits[want] - logits[got[i]];
        double temperature = c->temperature > 0 ? c->temperature : 1;
        /* rounding is in units of logit / temperature, of which row temperatures are at least 0.1 and at most 7. */
        double slack = deviations * reference->rounding[i] * (c->rows & FLP_CASE_ROW_TEMPERATURES ? 7 : temperature);
        int exact = c->values != FLP_CASE_NORMAL && c->bias == FLP_CASE_NO_BIAS;
        if (exact || !(behind > 0 && behind <= slack))
            return reject(to, "argmax[%" PRId64 "]: got %d (logit %.9g), wanted %" PRId64 " (logit %.9g)", i, got[i], logits[got[i]], want, logits[want]);
    }
    return 1;
}

int flp_case_check(const flp_case *c, const flp_case_data *data, const flp_reference *reference, char *message, size_t bytes)
{
    const double *rounding = reference->rounding;
    int64_t rows = reference->rows;
    report to = { message, bytes };
    for (int role = FLP_CASE_LOGP; role < FLP_CASE_BUFFERS; role++)
        if (data->buffer[role].base != NULL && !check_guards(flp_case_role_names[role], &data->buffer[role], &to))
            return 0;
    flp_linear_logp_args args;
    flp_case_args(c, data, NULL, &args);
    if (!check_values("logp", args.logp, reference->logp, rounding, rows, &to) || !check_sign(c, data, args.logp, &to))
        return 0;
    if (!check_likely("logp", c, args.logp, reference->logp, reference, 1, &to))
        return 0;
    if (args.entropy != NULL && !check_likely("entropy", c, args.entropy, reference->entropy, reference, 2, &to))
        return 0;
    if (args.lse != NULL && !check_values("lse", args.lse, reference->lse, rounding, rows, &to))
        return 0;
    if (args.entropy != NULL &&
        (!check_values("entropy", args.entropy, reference->entropy, reference->entropy_rounding, rows, &to) || !check_range(c, args.entropy, rows, &to)))
        return 0;
    return args.argmax == NULL || check_argmax(c, args.argmax, reference, &to);
}
