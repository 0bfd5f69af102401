/* Drops candidates and chooses the winner. */
#include "tune/tuner_field.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Two candidates whose times differ by no more than this are a tie. */
static const double tie = 0.01;
/* With fewer than FEW rounds, an interval is only from the lowest to the highest sample. No candidate wins by so few, and one is dropped only if it loses by
 * few_margin more. */
enum { FEW = FLP_TUNER_LEAST_TO_WIN, LEAST_TO_DROP = 3 };
static const double few_margin = 0.1;

flp_status flp_tuner_field_create(const flp_tuner_candidate *candidates, int count, flp_tuner_field *field)
{
    int defaults = 0;

    *field = (flp_tuner_field){ .candidates = candidates, .count = count, .samples = { .candidates = count } };
    for (int i = 0; i < count; i++) {
        if (candidates[i].tuning[0])
            continue;
        defaults++;
        field->standard = field->best = i;
    }
    if (defaults != 1)
        return flp_status_fail(FLP_BAD_ARGUMENT, "candidates: got %d with the tuning \"\", wanted one, the default", defaults);
    field->figures = calloc((size_t)count, sizeof(*field->figures));
    return field->figures ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "tuning: no memory for %d candidates", count);
}

void flp_tuner_field_free(flp_tuner_field *field)
{
    flp_tuner_samples_free(&field->samples);
}

/* 1: `one` is compiled before `other`. */
static int is_before(const flp_tuner_field *field, int one, int other)
{
    const double predicted = field->candidates[one].predicted_seconds, others = field->candidates[other].predicted_seconds;

    if (one == field->standard || other == field->standard)
        return one == field->standard;
    if ((predicted > 0) != (others > 0))
        return predicted > 0;
    return predicted != others ? predicted < others : one < other;
}

void flp_tuner_field_order(const flp_tuner_field *field, int *order)
{
    for (int i = 0; i < field->count; i++) {
        int place = i;

        for (; place > 0 && is_before(field, i, order[place - 1]); place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
}

static int is_left(const flp_tuner_field *field, int candidate)
{
    return field->figures[candidate].fate == FLP_CANDIDATE_LEFT;
}

int flp_tuner_field_left(const flp_tuner_field *field)
{
    int left = 0;

    for (int i = 0; i < field->count; i++)
        left += is_left(field, i);
    return left;
}

void flp_tuner_field_reject(flp_tuner_field *field, int candidate, const char *reason)
{
    flp_tuner_figures *figures = &field->figures[candidate];

    figures->fate = FLP_CANDIDATE_REJECTED;
    snprintf(figures->reason, sizeof(figures->reason), "%s", reason);
    if (field->best == candidate)
        field->best = field->standard;
}

/* Fills in a candidate's figures from its samples, if it has any. */
static void set_figures(flp_tuner_field *field, int candidate)
{
    const flp_tuner_interval ratio = flp_tuner_samples_compare(&field->samples, candidate, field->standard);
    flp_tuner_figures *figures = &field->figures[candidate];

    if (!ratio.count)
        return;
    figures->rounds = ratio.count;
    figures->seconds = flp_tuner_samples_seconds(&field->samples, candidate);
    figures->ratio = exp(ratio.median);
    figures->ratio_low = exp(ratio.low);
    figures->ratio_high = exp(ratio.high);
}

int flp_tuner_field_find_best(flp_tuner_field *field)
{
    double least = 0; /* the default's log ratio */

    flp_tuner_samples_judge(&field->samples);
    field->best = field->standard;
    for (int i = 0; i < field->count; i++) {
        const flp_tuner_interval ratio = is_left(field, i) ? flp_tuner_samples_compare(&field->samples, i, field->standard) : (flp_tuner_interval){ 0 };

        if (!ratio.count || ratio.median >= least)
            continue;
        least = ratio.median;
        field->best = i;
    }
    return field->best;
}

void flp_tuner_field_drop(flp_tuner_field *field, double loss)
{
    for (int i = 0; i < field->count; i++) {
        flp_tuner_interval behind;

        if (!is_left(field, i) || i == field->best || i == field->standard)
            continue;
        behind = flp_tuner_samples_compare(&field->samples, i, field->best);
        if (behind.count < LEAST_TO_DROP || behind.low <= log1p(loss) + (behind.count < FEW ? few_margin : 0))
            continue;
        set_figures(field, i);
        field->figures[i].fate = FLP_CANDIDATE_DROPPED;
    }
}

int flp_tuner_field_settled(const flp_tuner_field *field)
{
    for (int i = 0; i < field->count; i++) {
        const flp_tuner_interval behind =
            is_left(field, i) && i != field->best ? flp_tuner_samples_compare(&field->samples, i, field->best) : (flp_tuner_interval){ 0 };

        if (is_left(field, i) && i != field->best && behind.high > log1p(tie) && (i != field->standard || behind.low <= log1p(tie)))
            return 0;
    }
    return 1;
}

void flp_tuner_field_begin_anew(flp_tuner_field *field)
{
    flp_tuner_samples_free(&field->samples);
    field->best = field->standard;
}

/* 1: `one` wins if the two tie. */
static int is_preferred(const flp_tuner_candidate *one, const flp_tuner_candidate *other)
{
    if (one->workspace_bytes != other->workspace_bytes)
        return one->workspace_bytes < other->workspace_bytes;
    return strcmp(one->tuning, other->tuning) < 0;
}

/* 1: a candidate is faster than the default by more than the noise. */
static int beats_default(const flp_tuner_field *field, int candidate)
{
    const flp_tuner_interval ratio = flp_tuner_samples_compare(&field->samples, candidate, field->standard);

    return ratio.count >= FEW && ratio.high < 0;
}

int flp_tuner_field_choose(flp_tuner_field *field)
{
    int winner = field->standard, best = field->standard;
    double least = 0;

    flp_tuner_samples_judge(&field->samples);
    for (int i = 0; i < field->count; i++) {
        const flp_tuner_interval ratio = flp_tuner_samples_compare(&field->samples, i, field->standard);

        if (!is_left(field, i))
            continue;
        set_figures(field, i);
        if (i != field->standard && ratio.median < least && beats_default(field, i)) {
            least = ratio.median;
            best = i;
        }
    }
    field->best = winner = best;
    for (int i = 0; i < field->count; i++) {
        if (!is_left(field, i) || i == best || (i != field->standard && !beats_default(field, i)))
            continue;
        if (flp_tuner_samples_compare(&field->samples, i, best).median <= log1p(tie) && is_preferred(&field->candidates[i], &field->candidates[winner]))
            winner = i;
    }
    return winner;
}
