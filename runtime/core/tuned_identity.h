/* What a record of a tuning is identified by. */
#ifndef FLP_CORE_TUNED_IDENTITY_H
#define FLP_CORE_TUNED_IDENTITY_H
#include "core/operator.h"
#include "jit/generator.h"
#include "tune/record.h"

/* The problem as records name it: with its bucket of rows, and without a backend. text [FLP_PROBLEM_TEXT_BYTES] */
flp_status flp_tuned_problem_text(const flp_operator *op, const void *normal, char *text);

/* Fills in identity, all but its problem, for the wanted kernels with their tuning. Errors as flp_generator_identify. */
flp_status flp_tuned_identify(flp_context *context, const flp_wanted_kernels *wanted, flp_record_identity *identity);

/* ---- what decides on a row's bits ----
 * A record of a problem without its rows, "linear_logp:bf16:d2048:v131072", decides on the bits of a row for every number of rows: in a context with
 * FLP_CONTEXT_TUNED_BITS the kernels of each number of rows begin with its tuning. Its identity is that of FLP_TUNED_DECIDING_ROWS rows without a tuning, so
 * that there is one file name for it, and a new record replaces the old one at once. */
enum { FLP_TUNED_DECIDING_ROWS = 4096 };

/* The problem's string without its rows, and back, with FLP_TUNED_DECIDING_ROWS rows. text [FLP_PROBLEM_TEXT_BYTES]. Returns 0 and writes nothing if the string
 * has no rows, or already has some. */
int flp_tuned_without_rows(const char *problem, char *text);
int flp_tuned_with_rows(const char *problem, char *text);

/* The identity of the record that decides. wanted's problem may have any number of rows, and its tuning is not read. Errors as flp_tuned_identify. */
flp_status flp_tuned_identify_decision(flp_context *context, const flp_operator *op, const void *normal, const flp_wanted_kernels *wanted,
                                       flp_record_identity *identity);
#endif
