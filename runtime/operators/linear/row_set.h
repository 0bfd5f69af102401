/* Sets of sixteen rows of hidden, which may lie anywhere in the caller's array: each row has a vector lane. Also each row's own target and temperature. */
#ifndef FLP_OPERATORS_ROW_SET_H
#define FLP_OPERATORS_ROW_SET_H
#include "cpu/microkernel.h"
#include "cpu/row_statistics.h"
#include "fusedlogp.h"

/* The row's target. inputs, here and below: args whose inputs are filled in; the outputs are not read. */
int64_t flp_row_set_target(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, int64_t row);

/* Whether a row is valid, by its target. Only valid rows have a log-probability and contribute to losses and gradients. */
typedef enum { FLP_ROW_VALID, FLP_ROW_IGNORED, FLP_ROW_BAD } flp_row_kind;
flp_row_kind flp_row_kind_of(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, int64_t target);
/* Adds 1 to *bad_count and lowers *bad_first to `row`. Either may be NULL. A negative *bad_first means that there was no such row yet. */
void flp_row_count_bad(int64_t row, int64_t *bad_count, int64_t *bad_first);

double flp_row_temperature(const flp_linear_logp_args *inputs, int64_t row);

/* Fills set [words of D][16], as the microkernel reads it, with hidden of the rows row[0] .. row[count - 1], count <= 16. Lanes without a row are zeros. */
void flp_row_set_gather(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, const int64_t *row,
                        int count, float *set);

/* Fills in what turns these rows' logits into z2. Lanes without a row have a temperature of 1. */
void flp_row_set_transform(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, const int64_t *row, int count,
                           flp_row_transform *transform);
#endif
