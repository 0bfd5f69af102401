/* The candidates of a tuning and what is known of them: which are left, which is ahead, and which one wins. */
#ifndef FLP_TUNE_TUNER_FIELD_H
#define FLP_TUNE_TUNER_FIELD_H
#include "tune/tuner.h"
#include "tune/tuner_field.h"

/* ---- times of candidates in rounds, and what they say of two candidates ---- */

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

/* ---- the candidates ---- */

typedef struct {
    const flp_tuner_candidate *candidates;
    int count, standard;        /* standard: the default's index */
    flp_tuner_figures *figures; /* [count] */
    flp_tuner_samples samples;
    int best; /* of those left, by the median beside the default */
} flp_tuner_field;

/* FLP_BAD_ARGUMENT: not exactly one is the default. FLP_OUT_OF_MEMORY. */
flp_status flp_tuner_field_create(const flp_tuner_candidate *candidates, int count, flp_tuner_field *field);
/* All but the figures, which are the result's. */
void flp_tuner_field_free(flp_tuner_field *field);

/* The candidates in the order in which they are compiled: the default, then by their predicted times. order: [count]. */
void flp_tuner_field_order(const flp_tuner_field *field, int *order);
int flp_tuner_field_left(const flp_tuner_field *field);

void flp_tuner_field_reject(flp_tuner_field *field, int candidate, const char *reason);

/* After a round: finds which rounds count and who is ahead, and returns it. */
int flp_tuner_field_find_best(flp_tuner_field *field);
/* Then: drops each whose interval says that it loses more than `loss` (0.01: 1 %) to the best. The default stays. */
void flp_tuner_field_drop(flp_tuner_field *field, double loss);

/* 1 where further rounds would change nothing: those left are as fast as the best, within 1 %, or the default, which is slower for certain. */
int flp_tuner_field_settled(const flp_tuner_field *field);

/* The samples go, those left stay. */
void flp_tuner_field_begin_anew(flp_tuner_field *field);

/* The winner among those left; all figures of these. */
int flp_tuner_field_choose(flp_tuner_field *field);
#endif
