/* A tuning target: a problem of any operator with its arrays on the device, filled with random numbers, and the candidates for its tuning, which it plans,
 * checks against one another and times. Memory and stream are its own, and nothing of the caller's is touched. */
#ifndef FLP_CORE_TUNE_TARGET_H
#define FLP_CORE_TUNE_TARGET_H
#include "core/call.h"

typedef struct flp_tune_target flp_tune_target; /* in the CUDA context that was current when it was created */

typedef struct {
    const char *base; /* the tuning that others are compared with, and whose bits they keep; must live as long as the target. NULL, "": the generator's own */
    int alone;        /* 1: there are no candidates except the base and those that are added; the workspace has room for more splits than the base's */
    int limit;        /* most candidates of a role; 0: 12 */
    int is_burst;     /* 1: the device idles before each timed run; 0: runs follow each other */
    double idle_seconds;   /* before a run of a burst; 0: 0.02 */
    int64_t memory_bytes;  /* the most that arrays and workspace may take; 0: what is free, with a workspace of at most the base's or 16 MiB */
    int64_t checked_bytes; /* how much of each result is compared, half at its beginning and half at its end; 0: 16 MiB */
} flp_tune_target_options;

/* problem: with the rows that are tuned for, which are rounded up to their bucket. The base's plan is run, and its results must agree with the CPU path's on
 * few rows. FLP_BAD_ARGUMENT: the problem is not acceptable; FLP_NO_VARIANT: the CPU path answers it; FLP_OUT_OF_MEMORY: the message says what it would take;
 * FLP_INTERNAL: the results differ, or a tuning cannot make calls of this operator. */
flp_status flp_tune_target_create(flp_context *context, const flp_operator_calls *calls, const void *problem, const flp_tune_target_options *options,
                                  flp_tune_target **target);
/* Waits for its work. NULL is allowed. */
void flp_tune_target_destroy(flp_tune_target *target);

/* The candidates, number 0 the base. */
typedef struct {
    char tuning[FLP_TUNING_BYTES];
    flp_role role;            /* whose kernel it changes; FLP_ROLES: none, or several */
    double predicted_seconds; /* of the whole call, by gen/model.lua */
    int64_t workspace_bytes;  /* its own once it is prepared; before that, the base's */
    int is_advised;           /* 1: what a plan takes in place of the base as long as there is no exact record: advice (only candidate 1 can be), or what
                               * flp_tune_target_follow names */
} flp_tune_candidate;
int flp_tune_target_count(const flp_tune_target *target);
const flp_tune_candidate *flp_tune_target_candidate(const flp_tune_target *target, int candidate);

/* Adds a candidate that joins the changes of all of these to the base. *candidate: its number. FLP_OUT_OF_MEMORY; FLP_BAD_ARGUMENT: the tuning would be too
 * long. No other thread may use the target meanwhile. */
flp_status flp_tune_target_join(flp_tune_target *target, const int *candidates, int count, int *candidate);

/* Adds a candidate with this tuning, for which there is no predicted time. Otherwise as flp_tune_target_join. */
flp_status flp_tune_target_add(flp_tune_target *target, const char *tuning, int *candidate);

/* Says which tuning a plan of the problem has now, without an exact record: a candidate of this tuning is marked as advised, and added where there is none.
 * Nothing is marked where it is the base's. Errors as flp_tune_target_add. */
flp_status flp_tune_target_follow(flp_tune_target *target, const char *tuning);

/* Adds candidates that change what `candidate` changes and also how kernels are launched (chunks), but no row's bits: at most FLP_TUNE_TARGET_OFFERS. *count:
 * how many; they get the last numbers. Otherwise as flp_tune_target_join. */
enum { FLP_TUNE_TARGET_OFFERS = 16 };
flp_status flp_tune_target_offer(flp_tune_target *target, int candidate, int *count);
/* How many candidates flp_tune_target_offer would add. */
int flp_tune_target_count_offers(const flp_tune_target *target);

/* The problem's string, with its bucket of rows. */
const char *flp_tune_target_problem(const flp_tune_target *target);
/* The identity that a record of the base must agree with. */
const flp_record_identity *flp_tune_target_identity(const flp_tune_target *target);
/* The identity that a record of a candidate must agree with. Errors as flp_tuned_identify. */
flp_status flp_tune_target_identify(const flp_tune_target *target, int candidate, flp_record_identity *identity);
/* Finds the problem's record among `records`, as flp_tuned_record. */
flp_status flp_tune_target_record(const flp_tune_target *target, flp_records *records, const flp_environment *environment, flp_record *record,
                                  flp_record_match *match);
/* Publishes a record of the problem, as flp_tuned_publish. */
flp_status flp_tune_target_publish(const flp_tune_target *target, flp_records *records, const flp_record *record);

/* Appends a candidate's time, as a line for flp_calibration_make. */
void flp_tune_target_sample(const flp_tune_target *target, int candidate, double seconds, flp_text *lines);

/* Makes a candidate's plan: compiles and loads its kernels. From any thread. FLP_NO_VARIANT: calls do not launch the kernel that it changes, or a kernel spills
 * more registers than the base's. FLP_OUT_OF_MEMORY: also where its workspace is too large. Other errors as flp_create_plan_tuned. */
flp_status flp_tune_target_prepare(flp_tune_target *target, int candidate);
/* Compares the results of a prepared candidate with the base's, on few rows and on all. If the numeric identities are the same, the bits must be, too.
 * Otherwise the results must agree within a tolerance, on few rows also with the CPU path's. From one thread at a time, like flp_tune_target_time.
 * FLP_INTERNAL: which result differs, and where. */
flp_status flp_tune_target_check(flp_tune_target *target, int candidate);
/* Times one run by CUDA events around it. A run is several calls where one is short; *seconds: of one call. */
flp_status flp_tune_target_time(flp_tune_target *target, int candidate, double *seconds);
#endif
