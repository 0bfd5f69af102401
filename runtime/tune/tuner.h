/* The tuner: finds the fastest of several candidates for running one problem, by measurements that drift. It knows nothing of GPUs: candidates are numbers, and
 * the device is a table of functions, which tests fill with a simulation.
 *
 * Candidates are compiled in the order of their predicted times, the default first, and checked against the reference. They are then timed in rounds: in each
 * round, every candidate that is left runs once, in random order. Candidates are compared by the logarithm of the ratio of their times within a round, because
 * the device's clock changes by more than candidates differ. What counts is the median of this logarithm over the rounds, and its 98 % bootstrap interval. A
 * candidate is dropped when by this interval it loses more than 1 % to the best, and after few rounds 10 % more than that. Rounds in which the clock fell below
 * 80 % of the rounds' median do not count and are timed again. Of candidates within 1 % of the best, the one with the smallest workspace wins, then the first
 * by name; but the default loses only to a candidate that is faster by more than the noise. A candidate that gets ahead is checked again, and the winner once
 * more. */
#ifndef FLP_TUNE_TUNER_H
#define FLP_TUNE_TUNER_H
#include <stdint.h>

#include "fusedlogp.h"

typedef struct {
    const char *tuning;       /* canonical text; "": the default, which exactly one candidate is */
    double predicted_seconds; /* by the model; 0: none, and the candidate comes last */
    int64_t workspace_bytes;  /* compile may still set it */
} flp_tuner_candidate;

/* What candidates run on. candidate: its index. If one of these functions fails, the candidate is rejected, for the reason in this thread's error message. */
typedef struct {
    void *self;
    /* Compiles the kernels, without using the device. May be called from several threads at once, while the functions below run. */
    flp_status (*compile)(void *self, int candidate);
    /* Loads the kernels and compares their results with the reference. Is called in the thread of flp_tuner_run, as are the functions below; may be called
     * again. */
    flp_status (*check)(void *self, int candidate);
    /* Runs once. *seconds: its time. *clock_mhz: the device's clock meanwhile; 0: not known. */
    flp_status (*time)(void *self, int candidate, double *seconds, double *clock_mhz);
    double (*now)(void *self); /* in seconds; a simulation has a clock of its own */
} flp_tuner_device;

typedef struct {
    int candidates, compiled, left; /* compiled: rejected ones too; left: not dropped yet */
    int rounds;                     /* that count */
    int best;                       /* so far */
    double ratio;                   /* the best's time over the default's */
    double seconds_left;            /* an upper bound; negative: not known yet */
} flp_tuner_progress;

typedef struct {
    double budget_seconds; /* exceeded at most by the piece of work that is running when it ends; 0: no limit */
    int rounds;            /* the most that count, up to 500; 0: 40 */
    int jobs;              /* threads that compile during the timing; 0: the calling thread compiles first, then times */
    uint64_t seed;         /* of the order within rounds */
    /* NULL, or called before each piece of work. The tuning ends if it does not return 0. */
    int (*progress)(void *data, const flp_tuner_progress *progress);
    /* NULL, or called before a candidate is checked or timed, and with -1 afterwards, so that a watchdog can notice a kernel that never ends. */
    void (*running)(void *data, int candidate);
    /* NULL, or called before a candidate is compiled, with begins 1, and afterwards, with begins 0. From any thread. */
    void (*compiling)(void *data, int candidate, int begins);
    /* NULL, or returns 1 for a candidate that hung in an earlier tuning, which is then not tried. From any thread. */
    int (*has_hung)(void *data, int candidate);
    void *data;
} flp_tuner_options;

/* No candidate wins by fewer rounds. */
enum { FLP_TUNER_LEAST_TO_WIN = 5 };

/* How a tuning ended. */
typedef enum {
    FLP_TUNING_SETTLED, /* no candidate that was left could change the result any more */
    FLP_TUNING_ROUNDS,  /* all rounds were timed */
    FLP_TUNING_BUDGET,  /* its time was over */
    FLP_TUNING_INTERRUPTED
} flp_tuning_end;

typedef enum { FLP_CANDIDATE_UNTRIED, FLP_CANDIDATE_REJECTED, FLP_CANDIDATE_DROPPED, FLP_CANDIDATE_LEFT } flp_candidate_fate;

enum { FLP_TUNER_REASON_BYTES = 256 };

typedef struct {
    flp_candidate_fate fate;
    char reason[FLP_TUNER_REASON_BYTES]; /* of a rejection */
    int rounds;                          /* that the figures are from; 0: there are no figures */
    double seconds;                      /* median of its runs */
    double ratio, ratio_low, ratio_high; /* its time over the default's in the same round: median and interval */
} flp_tuner_figures;

typedef struct {
    int winner;
    flp_tuning_end ended;
    int compiled;         /* candidates that were compiled, each once, rejected ones too */
    int rounds, repeated; /* rounds that count, and that did not */
    double spent_seconds;
    flp_tuner_figures *figures; /* of each candidate */
} flp_tuner_result;

/* Runs a tuning. If it is interrupted or out of time, it chooses by what it has measured: before five rounds, the default. Free the result by
 * flp_tuner_result_free in every case. FLP_BAD_ARGUMENT: not exactly one of the candidates is the default; FLP_OUT_OF_MEMORY; or the error of the default. */
flp_status flp_tuner_run(const flp_tuner_candidate *candidates, int count, const flp_tuner_device *device, const flp_tuner_options *options,
                         flp_tuner_result *result);
void flp_tuner_result_free(flp_tuner_result *result);
#endif
