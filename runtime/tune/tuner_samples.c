/* Medians of ratios within rounds, and their bootstrap intervals. */
#include "tune/tuner_field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* The part of the bootstrap's medians that is below the interval, and also the part above it. */
static const double outside = 0.01;
/* A round whose clock is below this part of the rounds' median was throttled. */
static const double least_clock = 0.8;

void flp_tuner_samples_free(flp_tuner_samples *samples)
{
    free(samples->seconds);
    free(samples->clocks);
    free(samples->counts);
    free(samples->scratch);
    *samples = (flp_tuner_samples){ .candidates = samples->candidates };
}

static int grow(void *array, size_t bytes)
{
    void *larger = realloc(*(void **)array, bytes);

    if (larger)
        *(void **)array = larger;
    return larger != NULL;
}

flp_status flp_tuner_samples_begin_round(flp_tuner_samples *samples)
{
    const size_t row = (size_t)samples->candidates * sizeof(double);

    if (samples->rounds == samples->capacity) {
        size_t capacity = samples->capacity ? 2 * (size_t)samples->capacity : 32;

        if (!grow(&samples->seconds, capacity * row) || !grow(&samples->clocks, capacity * sizeof(double)) || !grow(&samples->counts, capacity) ||
            !grow(&samples->scratch, capacity * sizeof(double)))
            return flp_status_fail(FLP_OUT_OF_MEMORY, "tuning: no memory for %zu rounds", capacity);
        samples->capacity = (int)capacity;
    }
    memset((char *)samples->seconds + (size_t)samples->rounds * row, 0, row);
    samples->clocks[samples->rounds] = 0;
    samples->counts[samples->rounds] = 1;
    samples->rounds++;
    return FLP_OK;
}

static double *at(const flp_tuner_samples *samples, int round, int candidate)
{
    return &samples->seconds[(size_t)round * (size_t)samples->candidates + (size_t)candidate];
}

void flp_tuner_samples_add(flp_tuner_samples *samples, int candidate, double seconds, double clock_mhz)
{
    double *lowest = &samples->clocks[samples->rounds - 1];

    *at(samples, samples->rounds - 1, candidate) = seconds;
    if (clock_mhz > 0 && (*lowest == 0 || clock_mhz < *lowest))
        *lowest = clock_mhz;
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Sorts values; count >= 1. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare_numbers);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void flp_tuner_samples_judge(flp_tuner_samples *samples)
{
    int known = 0;
    double usual;

    for (int i = 0; i < samples->rounds; i++)
        if (samples->clocks[i] > 0)
            samples->scratch[known++] = samples->clocks[i];
    usual = known ? median(samples->scratch, known) : 0;
    samples->counting = 0;
    for (int i = 0; i < samples->rounds; i++) {
        samples->counts[i] = samples->clocks[i] == 0 || samples->clocks[i] >= least_clock * usual;
        samples->counting += samples->counts[i];
    }
}

/* The probability that at least half of `count` draws succeed, if each does with this chance, which is at most about a half. */
static double at_least_half(int count, double chance)
{
    double probability = pow(1 - chance, count), sum = 0;

    for (int k = 0; k <= count; k++) {
        sum += 2 * k >= count ? probability : 0;
        probability *= (count - k) / (k + 1.0) * chance / (1 - chance);
    }
    return sum;
}

/* Resampling is not needed: the median of a resample is at most the k-th lowest sample if at least half of its draws are, and each draw is with the chance
 * k / count. */
int flp_tuner_interval_rank(int count)
{
    int rank = 1, above = (count + 1) / 2; /* the lowest rank that is not outside is in rank .. above */

    while (rank < above) {
        const int middle = (rank + above) / 2;

        if (at_least_half(count, (double)middle / count) <= outside)
            rank = middle + 1;
        else
            above = middle;
    }
    return rank;
}

flp_tuner_interval flp_tuner_samples_compare(const flp_tuner_samples *samples, int one, int other)
{
    flp_tuner_interval interval = { 0 };
    double *ratios = samples->scratch;
    int rank;

    for (int i = 0; i < samples->rounds; i++) {
        const double time = *at(samples, i, one), others = *at(samples, i, other);

        if (samples->counts[i] && time > 0 && others > 0)
            ratios[interval.count++] = log(time / others);
    }
    if (!interval.count)
        return interval;
    interval.median = median(ratios, interval.count);
    rank = flp_tuner_interval_rank(interval.count);
    interval.low = ratios[rank - 1];
    interval.high = ratios[interval.count - rank];
    return interval;
}

double flp_tuner_samples_seconds(const flp_tuner_samples *samples, int candidate)
{
    int count = 0;

    for (int i = 0; i < samples->rounds; i++)
        if (samples->counts[i] && *at(samples, i, candidate) > 0)
            samples->scratch[count++] = *at(samples, i, candidate);
    return count ? median(samples->scratch, count) : 0;
}
