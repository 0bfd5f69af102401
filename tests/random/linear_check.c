/* Judges what a machine has written for a random problem of the linear operators. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "operators/linear/vocab_chunks.h"
#include "random/linear.h"
#include "random/judge.h"

typedef struct {
    const flp_random_linear *linear;
    const flp_random_machine *machine;
    char *message;
    size_t bytes;
} judge;

static int reject(const judge *j, const char *name, int64_t i, double got, double want, double bound)
{
    snprintf(j->message, j->bytes, "%s[%" PRId64 "]: got %.9g, wanted %.9g within %.3g", name, i, got, want, bound);
    return 0;
}

static const float *floats(const judge *j, flp_random_role role)
{
    return flp_random_memory_at(&j->linear->memory, role);
}

/* Where only valid rows have statistics. */
static int has_statistics(const judge *j, int64_t i)
{
    const flp_random_problem *p = j->linear->problem;

    return p->op == FLP_RANDOM_LINEAR || flp_random_linear_has_part(j->linear, i);
}

static int check_rows(const judge *j)
{
    const float *logp = floats(j, FLP_RANDOM_LOGP), *lse = floats(j, FLP_RANDOM_LSE), *entropy = floats(j, FLP_RANDOM_ENTROPY);

    for (int64_t i = 0; i < j->linear->problem->n; i++) {
        const flp_random_row *row = &j->linear->row[i];
        const int counts = has_statistics(j, i), ignored = flp_random_linear_is_ignored(j->linear, i);
        const double want_logp = ignored ? 0 : flp_random_linear_has_part(j->linear, i) ? row->logp : NAN;
        const double want_lse = counts ? row->lse : 0, want_entropy = counts ? row->entropy : 0;
        if (logp && !flp_random_is_right("logp", FLP_F32, logp[i], want_logp, ignored ? 0 : row->logp_error))
            return reject(j, "logp", i, logp[i], want_logp, row->logp_error);
        if (logp && logp[i] > 0)
            return reject(j, "logp above 0", i, logp[i], want_logp, row->logp_error);
        if (lse && !flp_random_is_right("lse", FLP_F32, lse[i], want_lse, counts ? row->lse_error : 0))
            return reject(j, "lse", i, lse[i], want_lse, row->lse_error);
        if (entropy && !flp_random_is_right("entropy", FLP_F32, entropy[i], want_entropy, counts ? row->entropy_error : 0))
            return reject(j, "entropy", i, entropy[i], want_entropy, row->entropy_error);
        if (entropy && entropy[i] < 0)
            return reject(j, "entropy below 0", i, entropy[i], want_entropy, row->entropy_error);
    }
    return 1;
}

static int check_argmax(const judge *j)
{
    const int32_t *got = flp_random_memory_at(&j->linear->memory, FLP_RANDOM_ARGMAX);

    for (int64_t i = 0; got && i < j->linear->problem->n; i++) {
        const flp_random_row_inputs inputs = flp_random_linear_row_inputs(j->linear, i);
        if (got[i] < 0 || got[i] >= inputs.vocab || !flp_random_row_may_be_first(&inputs, &j->linear->row[i], got[i]))
            return reject(j, "argmax", i, got[i], (double)j->linear->row[i].argmax, 0);
    }
    return 1;
}

/* Where a result is beyond fp32, and only there, it may be told as infinite, or what follows from that. Where the exponential of what logp may be off by is
 * beyond fp64, an infinite loss is none that fp32 can know of. */
static int is_loss(const char *name, double got, double want, double error, int is_beyond)
{
    return (is_beyond && !isfinite(got)) || (isinf(want) && isinf(error) && !isnan(got)) || flp_random_is_right(name, FLP_F32, got, want, error);
}

static int check_loss(const judge *j)
{
    const flp_cross_entropy_reference *r = &j->linear->loss;
    const float *loss = floats(j, FLP_RANDOM_LOSS);

    if (j->linear->problem->op != FLP_RANDOM_CROSS_ENTROPY)
        return 1;
    if (j->linear->problem->reduction != FLP_REDUCE_NONE)
        return is_loss("loss", loss[0], r->total, r->total_error, j->linear->total_beyond) || reject(j, "loss", 0, loss[0], r->total, r->total_error);
    for (int64_t i = 0; i < r->rows; i++)
        if (!is_loss("loss of a row", loss[i], r->loss[i], r->error[i], j->linear->loss_beyond[i]))
            return reject(j, "loss", i, loss[i], r->loss[i], r->error[i]);
    return 1;
}

/* One gradient as it lies in memory: element (row, column) is the truth's row * row_factor + column * column_factor. */
typedef struct {
    const char *name;
    flp_random_role role;
    int dtype, adds;
    const flp_random_gradient *want;
    int64_t row_factor, column_factor;
} output;

/* How often is added to what stands there: fp32 gradients of weight and bias take chunks of rows. */
static double additions_of(const judge *j, const output *o)
{
    return o->adds && o->dtype == FLP_F32 && o->role != FLP_RANDOM_GRAD_HIDDEN ? ceil((double)j->linear->problem->n / FLP_BACKWARD_ROW_BLOCK) : 1;
}

static int check_gradient(const judge *j, const output *o)
{
    const flp_random_buffer *buffer = &j->linear->memory.buffer[o->role];
    const char *kinds[] = { "", "bf16", "f16", "f32" };
    char note[48];

    snprintf(note, sizeof(note), "%s %s from %s", o->name, kinds[o->dtype], kinds[j->linear->problem->dtype]);
    for (int64_t row = 0; o->dtype && row < buffer->rows; row++)
        for (int64_t column = 0; column < buffer->columns; column++) {
            const int64_t place = row * buffer->stride + column, at = row * o->row_factor + column * o->column_factor;
            const double old = o->adds ? flp_reference_decode((flp_dtype)o->dtype, buffer->before + buffer->offset, place) : 0;
            const double want = o->want->value[at] + old, got = flp_reference_decode((flp_dtype)o->dtype, buffer->base + buffer->offset, place);
            const double bound = flp_random_gradient_bound(j->linear, o->want, at, j->machine->is_cpu) + additions_of(j, o) * 0x1p-24 * fabs(old);
            if (isfinite(want) && !(bound < INFINITY)) /* of derivatives that fp32 has no room for */
                continue;
            if (!isfinite(got) && o->want->whole[at] + fabs(old) > FLT_MAX)
                continue;
            /* A row that became infinite, times the exponentials 0 of entries to which it gives nothing: what is out of range is seen. */
            if (!isfinite(got) && o->role == FLP_RANDOM_GRAD_WEIGHT && j->linear->rows_beyond && !j->machine->is_cpu)
                continue;
            if (!isfinite(want) ? isfinite(got) : !flp_random_is_right(note, o->dtype, got, want, bound))
                return reject(j, o->name, at, got, want, bound);
        }
    return 1;
}

int flp_random_linear_check(const flp_random_linear *linear, const flp_random_machine *machine, char *message, size_t bytes)
{
    const flp_random_problem *p = linear->problem;
    const judge j = { linear, machine, message, bytes };
    const output outputs[] = {
        { "grad_hidden", FLP_RANDOM_GRAD_HIDDEN, p->grad_hidden, p->accumulate & FLP_ACCUMULATE_HIDDEN, &linear->hidden, p->d, 1 },
        { "grad_weight", FLP_RANDOM_GRAD_WEIGHT, p->grad_weight, p->accumulate & FLP_ACCUMULATE_WEIGHT, &linear->weight, p->columns ? 1 : p->d,
          p->columns ? p->d : 1 },
        { "grad_bias", FLP_RANDOM_GRAD_BIAS, p->grad_bias, p->accumulate & FLP_ACCUMULATE_BIAS, &linear->bias, 0, 1 },
    };

    if (!flp_random_memory_check(&linear->memory, message, bytes) || !check_rows(&j) || !check_argmax(&j) || !check_loss(&j))
        return 0;
    for (size_t i = 0; i < sizeof(outputs) / sizeof(*outputs); i++)
        if (!check_gradient(&j, &outputs[i]))
            return 0;
    return 1;
}
