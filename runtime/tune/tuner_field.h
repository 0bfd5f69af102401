/* The candidates of a tuning and what is known of them: which are left, which is ahead, and which one wins. */
#ifndef FLP_TUNE_TUNER_FIELD_H
#define FLP_TUNE_TUNER_FIELD_H
#include "tune/tuner.h"

/* ---- times of candidates in rounds, and what they say of two candidates ---- */

/* All fields except candidates begin as 0. Freed by flp_tuner_samples_free. */
typedef struct {
    int candidates;
    int rounds, capacity;
    int counting;    /* rounds that count, by flp_tuner_samples_judge */
    double *seconds; /* [rounds, candidates]; 0: not timed */
    double *clocks;  /* [rounds]: the lowest clock of each, in MHz; 0: not known */
    char *counts;    /* [rounds] 1: the round counts */
    double *scratch; /* [capacity] */
} flp_tuner_samples;

void flp_tuner_samples_free(flp_tuner_samples *samples);

/* Begins a round. FLP_OUT_OF_MEMORY. */
flp_status flp_tuner_samples_begin_round(flp_tuner_samples *samples);
/* Adds a candidate's time to the last round. clock_mhz 0: not known. */
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
    int best; /* of those left, the one with the lowest median ratio of its time to the default's */
} flp_tuner_field;

/* FLP_BAD_ARGUMENT: not exactly one is the default. FLP_OUT_OF_MEMORY. */
flp_status flp_tuner_field_create(const flp_tuner_candidate *candidates, int count, flp_tuner_field *field);
/* Frees all but the figures, which belong to the result. */
void flp_tuner_field_free(flp_tuner_field *field);

/* Writes the order in which candidates are compiled: the default, then by predicted time. order: [count]. */
void flp_tuner_field_order(const flp_tuner_field *field, int *order);
/* How many are left. */
int flp_tuner_field_left(const flp_tuner_field *field);

void flp_tuner_field_reject(flp_tuner_field *field, int candidate, const char *reason);

/* To be called after a round: finds which rounds count and which candidate is the best, and returns it. */
int flp_tuner_field_find_best(flp_tuner_field *field);
/* To be called after flp_tuner_field_find_best: drops each candidate that by its interval loses more than `loss` (0.01: 1 %) to the best. The default stays. */
void flp_tuner_field_drop(flp_tuner_field *field, double loss);

/* 1: further rounds would change nothing, because each candidate that is left is as fast as the best within 1 %, or is the default and slower for certain. */
int flp_tuner_field_settled(const flp_tuner_field *field);

/* Discards all samples. The candidates that are left stay. */
void flp_tuner_field_begin_anew(flp_tuner_field *field);

/* Returns the winner among the candidates that are left, and fills in their figures. */
int flp_tuner_field_choose(flp_tuner_field *field);
#endif
