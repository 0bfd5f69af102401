/* Chooses a problem's arithmetic, i.e. the part of its tuning that changes a row's bits, for all its numbers of rows at once. For each number of rows, the
 * arithmetics that the generator offers are timed, with a few tunings each, on a target of its own (core/tune_target.h). For each role, the arithmetic whose
 * times have the least geometric mean over all numbers of rows is chosen. */
#ifndef FLP_CORE_TUNE_NUMERICS_H
#define FLP_CORE_TUNE_NUMERICS_H
#include "core/tune_target.h"
#include "tune/tuner.h"

typedef struct flp_tune_numerics flp_tune_numerics;

/* Covers every bucket of rows up to the problem's, in the current CUDA context. limit: the most candidates of a role; 0: 12. memory_bytes: the most that arrays
 * and workspace may take; 0: what is free, with a workspace no larger than the default's. After a failure *numerics is NULL.
 * FLP_BAD_ARGUMENT: the problem is not acceptable; FLP_NO_VARIANT: the CPU path answers it; FLP_OUT_OF_MEMORY. */
flp_status flp_tune_numerics_create(flp_context *context, const flp_operator_calls *calls, const void *problem, int limit, int64_t memory_bytes,
                                    flp_tune_numerics **numerics);
/* NULL is allowed. */
void flp_tune_numerics_destroy(flp_tune_numerics *numerics);

/* The problem's string without its rows. */
const char *flp_tune_numerics_text(const flp_tune_numerics *numerics);
/* How many numbers of rows there are, at most FLP_TUNE_NUMERICS_MOST, and the problem of each. */
enum { FLP_TUNE_NUMERICS_MOST = 40 };
int flp_tune_numerics_count(const flp_tune_numerics *numerics);
const void *flp_tune_numerics_problem(const flp_tune_numerics *numerics, int number);
/* How many arithmetics there are to choose from, of all roles; 0: there is no choice. */
int flp_tune_numerics_choices(const flp_tune_numerics *numerics);

/* Adds the candidates of one number of rows to its target, which was created with `alone`. FLP_OUT_OF_MEMORY. */
flp_status flp_tune_numerics_offer(const flp_tune_numerics *numerics, int number, flp_tune_target *target);
/* Takes over the times of these candidates. */
void flp_tune_numerics_take(flp_tune_numerics *numerics, int number, const flp_tune_target *target, const flp_tuner_result *result);

/* Writes the tuning that is chosen; "": the generator's own arithmetic, which loses only to one that is more than 1 % faster over all numbers of rows. An
 * arithmetic that was not timed for every number of rows is not chosen. tuning [FLP_TUNING_BYTES]. FLP_BAD_ARGUMENT: it would be too long. */
flp_status flp_tune_numerics_decide(const flp_tune_numerics *numerics, char *tuning);

/* Finds the deciding record that there is now. FLP_RECORD_NONE: there is none. Errors as flp_tuned_identify_decision. */
flp_status flp_tune_numerics_find(const flp_tune_numerics *numerics, flp_records *records, const flp_environment *environment, flp_record *decision,
                                  flp_record_match *match);

/* Publishes the record of each number of rows, and last, by one rename, the deciding record. No plan uses the others before that one is there. of_rows, ratios:
 * for each number of rows the record, and its time over the time of the generator's own choice. decision: receives the deciding record, whose ratio and times
 * are geometric means. Errors as flp_tuned_publish. */
flp_status flp_tune_numerics_publish(const flp_tune_numerics *numerics, flp_records *records, const char *tuning, const flp_record *of_rows,
                                     const double *ratios, flp_record *decision);
#endif
