/* Judges a case's loss, outputs and gradients.
 *
 * A row's loss, logp and lse may be off by four times the reference's estimate of what fp32 costs them; rounding to fp32 comes on top. The
 * entropy by once its estimate, in which the errors of the logits all have the sign that counts. The reduced loss by four times what the rows'
 * errors amount to where they are independent, and by what they have in common. */
#include "cross_entropy_cases.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double deviations = 4;

static int is_close(double got, double wanted, double allowed)
{
    if (!isfinite(got) || !isfinite(wanted))
        return (isnan(got) && isnan(wanted)) || got == wanted;
    return fabs(got - wanted) <= allowed + 0x1p-24 * fabs(wanted);
}

static const float *floats(const flp_cross_entropy_case_data *data, flp_cross_entropy_role role)
{
    const flp_case_buffer *buffer = &data->own[role];
    return buffer->base == NULL ? NULL : (const float *)(const void *)(buffer->base + buffer->offset);
}

static int check_rows(const char *name, const float *got, const double *wanted, double times, const double *error, int64_t rows, char *message, size_t bytes)
{
    for (int64_t i = 0; got != NULL && i < rows; i++) {
        if (is_close(got[i], wanted[i], times * error[i]))
            continue;
        snprintf(message, bytes, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g", name, i, got[i], wanted[i], times * error[i]);
        return 0;
    }
    return 1;
}

static int check_loss(const flp_cross_entropy_case *c, const flp_cross_entropy_case_data *data, char *message, size_t bytes)
{
    const flp_cross_entropy_reference *r = &data->reference;
    const float *loss = floats(data, FLP_CROSS_ENTROPY_LOSS);
    double allowed = deviations * r->total_deviation + r->total_shared;
    if (c->problem.reduction == FLP_REDUCE_NONE)
        return check_rows("loss", loss, r->loss, deviations, r->error, r->rows, message, bytes);
    return check_rows("loss", loss, &r->total, 1, &allowed, 1, message, bytes);
}

int flp_cross_entropy_case_check(const flp_cross_entropy_case *c, const flp_cross_entropy_case_data *data, double dlogit_roundoff, char *message, size_t bytes)
{
    const flp_cross_entropy_reference *r = &data->reference;
    const flp_reference *forward = &data->forward;
    return check_loss(c, data, message, bytes) &&
           check_rows("logp", floats(data, FLP_CROSS_ENTROPY_LOGP), forward->logp, deviations, forward->rounding, r->rows, message, bytes) &&
           check_rows("lse", floats(data, FLP_CROSS_ENTROPY_LSE), forward->lse, deviations, forward->rounding, r->rows, message, bytes) &&
           check_rows("entropy", floats(data, FLP_CROSS_ENTROPY_ENTROPY), forward->entropy, 1, forward->entropy_rounding, r->rows, message, bytes) &&
           (c->forward_only || flp_gradient_case_check(&c->gradient, &data->gradient, &data->gradients, dlogit_roundoff, message, bytes));
}
