/* Times of candidates in rounds, and what they say of two candidates. */
#ifndef FLP_TUNE_TUNER_SAMPLES_H
#define FLP_TUNE_TUNER_SAMPLES_H
#include "fusedlogp.h"

/* Zero-initialise, with the number of candidates; freed by flp_tuner_samples_free. */
typedef struct {
    int candidates;
    int rounds, capacity;
    int counting;    /* rounds that count, by flp_tuner_samples_judge */
    double *seconds; /* [rounds, candidates]; 0: not timed */
    double *clocks;  /* [rounds]: the lowest of each; 0: not known */
    char *counts;    /* [rounds] */
    double *scratch; /* [capacity] */
} flp_tuner_samples;

void flp_tuner_samples_free(flp_tuner_samples *samples);

/* FLP_OUT_OF_MEMORY. */
flp_status flp_tuner_samples_begin_round(flp_tuner_samples *samples);
/* To the last round. clock_mhz 0: not known. */
void flp_tuner_samples_add(flp_tuner_samples *samples, int candidate, double seconds, double clock_mhz);

/* Finds which rounds count: those whose clock did not fall below 80 % of the rounds' median. */
void flp_tuner_samples_judge(flp_tuner_samples *samples);

/* Median and interval of log(time of one / time of the other) over the rounds that count and have both. */
typedef struct {
    int count; /* of rounds; 0: the others are 0 too */
    double median, low, high;
} flp_tuner_interval;
flp_tuner_interval flp_tuner_samples_compare(const flp_tuner_samples *samples, int one, int other);

/* The median of a candidate's times in the rounds that count; 0: it has none. */
double flp_tuner_samples_seconds(const flp_tuner_samples *samples, int candidate);

/* The rank, from 1, of the order statistic of `count` samples that the interval begins with; it ends with the one of the same rank from above. */
int flp_tuner_interval_rank(int count);
#endif
