/* Finds the fastest of several ways to run one problem, among measurements that drift. It knows nothing of GPUs: candidates are numbers, and what they
 * run on is a table of functions, which a simulation fills as well.
 *
 * Candidates are compiled in the order of their predicted times, the default first, checked against the reference, and then timed in rounds: each that is
 * left, once a round, in random order. What is compared are logarithms of ratios within a round, because the device's clock moves by more than candidates
 * differ. Of each: the median over the rounds, and its bootstrap interval of 98 %. A candidate is dropped when it loses at least 1 % to the best; rounds
 * in which the clock fell below 80 % of the rounds' median do not count and are timed again. Ties within 1 % go to less workspace, then to the name, and
 * the default loses only to one that is faster by more than the noise. What gets ahead is checked again, and the winner once more. */
#ifndef FLP_TUNE_TUNER_H
#define FLP_TUNE_TUNER_H
#include <stdint.h>

#include "fusedlogp.h"

typedef struct {
    const char *tuning;       /* canonical text; "": the default, which exactly one candidate is */
    double predicted_seconds; /* by the model; 0: it says nothing, and the candidate comes last */
    int64_t workspace_bytes;  /* as it is once it is compiled, which may set it */
} flp_tuner_candidate;

/* candidate: its index. Where one of these fails, the thread's error message says why the candidate is rejected. */
typedef struct {
    void *self;
    /* Makes the kernels, without the device: may be called from several threads at once while the others below run. */
    flp_status (*compile)(void *self, int candidate);
    /* Loads them and compares their results with the reference. In the thread of flp_tuner_run, as those below; may be called again. */
    flp_status (*check)(void *self, int candidate);
    /* One run: its time, and the clock meanwhile, 0 where it is not known. */
    flp_status (*time)(void *self, int candidate, double *seconds, double *clock_mhz);
    double (*now)(void *self); /* in seconds; a simulation has a clock of its own */
} flp_tuner_device;

typedef struct {
    int candidates, compiled, left; /* compiled: rejected ones too; left: not dropped yet */
    int rounds;                     /* that count */
    int best;                       /* so far */
    double ratio;                   /* of its time to the default's */
    double seconds_left;            /* at most; negative: not known yet */
} flp_tuner_progress;

typedef struct {
    double budget_seconds; /* exceeded by no more than what runs when it ends; 0: none */
    int rounds;            /* the most that count, up to 500; 0: 40 */
    int jobs;              /* threads that compile beside the timing; 0: the calling thread compiles, and times then */
    uint64_t seed;         /* of the order within rounds */
    /* NULL, or called before each piece of work; ends the tuning where it returns another value than 0. */
    int (*progress)(void *data, const flp_tuner_progress *progress);
    /* NULL, or called before a candidate is checked or timed, and with -1 behind that: for who watches for one that never ends. */
    void (*running)(void *data, int candidate);
    /* NULL, or called before a candidate is compiled, and with begins 0 behind that; from any thread. */
    void (*compiling)(void *data, int candidate, int begins);
    /* NULL, or whether a candidate hung once; such a one is not tried. From any thread. */
    int (*has_hung)(void *data, int candidate);
    void *data;
} flp_tuner_options;

/* How a tuning ended. */
typedef enum {
    FLP_TUNING_SETTLED, /* what was left is as fast as the best */
    FLP_TUNING_ROUNDS,  /* all rounds were timed */
    FLP_TUNING_BUDGET,  /* its time was over */
    FLP_TUNING_INTERRUPTED
} flp_tuning_end;

typedef enum { FLP_CANDIDATE_UNTRIED, FLP_CANDIDATE_REJECTED, FLP_CANDIDATE_DROPPED, FLP_CANDIDATE_LEFT } flp_candidate_fate;

enum { FLP_TUNER_REASON_BYTES = 256 };

typedef struct {
    flp_candidate_fate fate;
    char reason[FLP_TUNER_REASON_BYTES]; /* of a rejection */
    int rounds;                          /* that the figures are of; 0: there are none */
    double seconds;                      /* median of its runs */
    double ratio, ratio_low, ratio_high; /* of its time to the default's in the same round: median and interval */
} flp_tuner_figures;

typedef struct {
    int winner;
    flp_tuning_end ended;
    int rounds, repeated; /* that count, and that did not */
    double spent_seconds;
    flp_tuner_figures *figures; /* of each candidate */
} flp_tuner_result;

/* Interrupted, or out of time, it answers by what it has learned: before five rounds that is the default. Free the result by flp_tuner_result_free in
 * every case. FLP_BAD_ARGUMENT: the candidates have not one default; FLP_OUT_OF_MEMORY; or what the default failed with. */
flp_status flp_tuner_run(const flp_tuner_candidate *candidates, int count, const flp_tuner_device *device, const flp_tuner_options *options,
                         flp_tuner_result *result);
void flp_tuner_result_free(flp_tuner_result *result);
#endif
