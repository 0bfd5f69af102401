/* A problem of any operator as it is tuned: its arrays on the device, filled with random numbers, plans of its candidates, their results compared, and
 * runs that are timed. Nothing of the caller's is touched: memory and stream are its own. */
#ifndef FLP_CORE_TUNE_TARGET_H
#define FLP_CORE_TUNE_TARGET_H
#include "core/call.h"

typedef struct flp_tune_target flp_tune_target; /* in the CUDA context that was current when it was made */

typedef struct {
    const char *base;      /* the tuning that others are compared with, and whose bits they keep; it has to last. NULL, "": the generator's own */
    int alone;             /* 1: there are no candidates beside it but those that are added, with memory for more splits than it has */
    int limit;             /* candidates of a role; 0: 12 */
    int is_burst;          /* 1: the device idles before each timed run; 0: runs follow each other */
    double idle_seconds;   /* before a run of a burst; 0: 0.02 */
    int64_t memory_bytes;  /* that arrays and workspace may take; 0: what is free, with a workspace that is hardly larger than the base's */
    int64_t checked_bytes; /* of each result that are compared, from its beginning and its end; 0: 16 MiB */
} flp_tune_target_options;

/* problem: with the rows that are tuned for. The results of the base's plan are there when it returns, and agree with the CPU path's on few rows.
 * FLP_BAD_ARGUMENT: what is unacceptable in the problem, or that its operator's calls cannot be made up; FLP_NO_VARIANT: the CPU path answers it;
 * FLP_OUT_OF_MEMORY: what it would take; FLP_INTERNAL: the results differ. */
flp_status flp_tune_target_create(flp_context *context, const flp_operator_calls *calls, const void *problem, const flp_tune_target_options *options,
                                  flp_tune_target **target);
/* Waits for its work. NULL is allowed. */
void flp_tune_target_destroy(flp_tune_target *target);

/* The candidates, number 0 the base. */
typedef struct {
    char tuning[FLP_TUNING_BYTES];
    flp_role role;            /* whose kernel it changes; FLP_ROLES: none, or several */
    double predicted_seconds; /* of the whole call, by gen/model.lua */
    int64_t workspace_bytes;  /* once it is prepared; before, the default's */
    int is_advised;           /* 1: number 1, where a plan without a record takes this in place of the base */
} flp_tune_candidate;
int flp_tune_target_count(const flp_tune_target *target);
const flp_tune_candidate *flp_tune_target_candidate(const flp_tune_target *target, int candidate);

/* Adds one that changes what all of these change of the base; *candidate: its number. FLP_OUT_OF_MEMORY. Not beside calls of other threads. */
flp_status flp_tune_target_join(flp_tune_target *target, const int *candidates, int count, int *candidate);

/* Adds one of this tuning, of which the model says nothing. Errors as the one before. */
flp_status flp_tune_target_add(flp_tune_target *target, const char *tuning, int *candidate);

/* Adds those that change, beside what one of them does, how a call goes by rather than its kernels, and no row's bits: at most FLP_TUNE_TARGET_OFFERS.
 * *count: how many, with consecutive numbers, the last the highest there is. FLP_OUT_OF_MEMORY. Not beside calls of other threads. */
enum { FLP_TUNE_TARGET_OFFERS = 16 };
flp_status flp_tune_target_offer(flp_tune_target *target, int candidate, int *count);
/* How many that is. */
int flp_tune_target_count_offers(const flp_tune_target *target);

/* The problem, of its bucket of rows. */
const char *flp_tune_target_problem(const flp_tune_target *target);
/* That of the base. */
const flp_record_identity *flp_tune_target_identity(const flp_tune_target *target);
/* What a record of a candidate must agree with. Errors as flp_tuned_identify. */
flp_status flp_tune_target_identify(const flp_tune_target *target, int candidate, flp_record_identity *identity);
/* The problem's record among these, as flp_tuned_record. */
flp_status flp_tune_target_record(const flp_tune_target *target, flp_records *records, const flp_environment *environment, flp_record *record,
                                  flp_record_match *match);
/* Publishes a record of the problem, as flp_tuned_publish. */
flp_status flp_tune_target_publish(const flp_tune_target *target, flp_records *records, const flp_record *record);

/* Appends what a candidate took, as a line for flp_calibration_make. */
void flp_tune_target_sample(const flp_tune_target *target, int candidate, double seconds, flp_text *lines);

/* Compiles and loads; from any thread. FLP_NO_VARIANT: there is nothing to time, or a kernel spills more registers than the base's; FLP_OUT_OF_MEMORY,
 * FLP_COMPILE_FAILED, ...: why it cannot be had. */
flp_status flp_tune_target_prepare(flp_tune_target *target, int candidate);
/* Compares the results of a prepared one with the CPU path's on few rows, and on all with the default's: their bits, where the numeric identity is the
 * same. From one thread at a time, as the next. FLP_INTERNAL: which result differs, and where. */
flp_status flp_tune_target_check(flp_tune_target *target, int candidate);
/* One run, by events around it: of several calls where one is short. */
flp_status flp_tune_target_time(flp_tune_target *target, int candidate, double *seconds);
#endif
