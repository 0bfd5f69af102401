/* What changes a row's bits is chosen for all numbers of rows of a problem at once. For each of them the arithmetics that the generator offers are timed, a
 * few tunings each, on a target of their own; the one with the least geometric mean of its times decides, of each role. */
#ifndef FLP_CORE_TUNE_NUMERICS_H
#define FLP_CORE_TUNE_NUMERICS_H
#include "core/tune_target.h"
#include "tune/tuner.h"

typedef struct flp_tune_numerics flp_tune_numerics;

/* Covers every bucket of rows up to the problem's, in the CUDA context that is current. limit: the most candidates of a role; 0: 12. memory_bytes: that arrays
 * and workspace may take; 0: what is free, with a workspace no larger than the default's.
 * FLP_BAD_ARGUMENT: the problem; FLP_NO_VARIANT: the CPU path answers it; FLP_OUT_OF_MEMORY. */
flp_status flp_tune_numerics_create(flp_context *context, const flp_operator_calls *calls, const void *problem, int limit, int64_t memory_bytes,
                                    flp_tune_numerics **numerics);
/* NULL is allowed. */
void flp_tune_numerics_destroy(flp_tune_numerics *numerics);

/* The problem without its rows. */
const char *flp_tune_numerics_text(const flp_tune_numerics *numerics);
/* How many numbers of rows there are, at most FLP_TUNE_NUMERICS_MOST, and the problem of each. */
enum { FLP_TUNE_NUMERICS_MOST = 40 };
int flp_tune_numerics_count(const flp_tune_numerics *numerics);
const void *flp_tune_numerics_problem(const flp_tune_numerics *numerics, int number);
/* How many arithmetics there are to choose from, of all roles; 0: there is no choice. */
int flp_tune_numerics_choices(const flp_tune_numerics *numerics);

/* Adds the candidates of one number of rows to its target, which is made `alone`; and takes what was timed of them. FLP_OUT_OF_MEMORY. */
flp_status flp_tune_numerics_offer(const flp_tune_numerics *numerics, int number, flp_tune_target *target);
void flp_tune_numerics_take(flp_tune_numerics *numerics, int number, const flp_tune_target *target, const flp_tuner_result *result);

/* The tuning that decides, "" for the generator's own: it loses only to what is more than 1 % faster over all that were timed, and what could not be had of
 * one number of rows is none. tuning [FLP_TUNING_BYTES]. FLP_BAD_ARGUMENT: it would be too long. */
flp_status flp_tune_numerics_decide(const flp_tune_numerics *numerics, char *tuning);

/* The record that decides today. FLP_RECORD_NONE: there is none. Errors as flp_tuned_identify_decision. */
flp_status flp_tune_numerics_find(const flp_tune_numerics *numerics, flp_records *records, const flp_environment *environment, flp_record *decision,
                                  flp_record_match *match);

/* Publishes the records of each number of rows, which no plan takes before the last one is there: the record that decides, in one rename. Its ratio and times
 * are geometric means. ratios: of each record's time to the generator's own choice. decision: that record. Errors as flp_tuned_publish. */
flp_status flp_tune_numerics_publish(const flp_tune_numerics *numerics, flp_records *records, const char *tuning, const flp_record *of_rows,
                                     const double *ratios, flp_record *decision);
#endif
