/* Judges a case's loss, outputs and gradients.
 *
 * A loss may be off by four times the reference's estimate of what fp32 costs it; rounding to fp32 comes on top. */
#include "cross_entropy_cases.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double deviations = 4;

static int is_close(double got, double wanted, double error)
{
    if (!isfinite(got) || !isfinite(wanted)) return (isnan(got) && isnan(wanted)) || got == wanted;
    return fabs(got - wanted) <= deviations * error + 0x1p-24 * fabs(wanted);
}

static const float *floats(const flp_cross_entropy_case_data *data, flp_cross_entropy_role role)
{
    const flp_case_buffer *buffer = &data->own[role];
    return buffer->base == NULL ? NULL : (const float *)(const void *)(buffer->base + buffer->offset);
}

static int check_rows(const char *name, const float *got, const double *wanted, const double *error, int64_t rows, char *message, size_t bytes)
{
    for (int64_t i = 0; got != NULL && i < rows; i++) {
        if (is_close(got[i], wanted[i], error[i])) continue;
        snprintf(message, bytes, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g", name, i, got[i], wanted[i], deviations * error[i]);
        return 0;
    }
    return 1;
}

int flp_cross_entropy_case_check(const flp_cross_entropy_case *c, const flp_cross_entropy_case_data *data, double dlogit_roundoff,
                                 char *message, size_t bytes)
{
    const flp_cross_entropy_reference *r = &data->reference;
    const float *loss = floats(data, FLP_CROSS_ENTROPY_LOSS);
    int each = c->problem.reduction == FLP_REDUCE_NONE;
    return check_rows("loss", loss, each ? r->loss : &r->total, each ? r->error : &r->total_error, each ? r->rows : 1, message, bytes) &&
           check_rows("logp", floats(data, FLP_CROSS_ENTROPY_LOGP), data->forward.logp, data->forward.rounding, r->rows, message, bytes) &&
           check_rows("lse", floats(data, FLP_CROSS_ENTROPY_LSE), data->forward.lse, data->forward.rounding, r->rows, message, bytes) &&
           check_rows("entropy", floats(data, FLP_CROSS_ENTROPY_ENTROPY), data->forward.entropy, data->forward.entropy_rounding, r->rows, message,
                      bytes) &&
           (c->forward_only || flp_gradient_case_check(&c->gradient, &data->gradient, &data->gradients, dlogit_roundoff, message, bytes));
}
