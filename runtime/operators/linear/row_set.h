/* Sets of sixteen rows of hidden, gathered from anywhere, one row a vector lane. */
#ifndef FLP_OPERATORS_ROW_SET_H
#define FLP_OPERATORS_ROW_SET_H
#include "cpu/microkernel.h"
#include "cpu/row_statistics.h"
#include "fusedlogp.h"

/* inputs: an args struct that begins as linear_logp's does, whose outputs are not looked at. */
int64_t flp_row_set_target(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, int64_t row);

/* What a row's target makes of it: only a valid row has a part in what follows. */
typedef enum { FLP_ROW_VALID, FLP_ROW_IGNORED, FLP_ROW_BAD } flp_row_kind;
flp_row_kind flp_row_kind_of(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, int64_t target);
/* Either may be NULL. A negative *bad_first stands for none yet. */
void flp_row_count_bad(int64_t row, int64_t *bad_count, int64_t *bad_first);

double flp_row_temperature(const flp_linear_logp_args *inputs, int64_t row);

/* set [words of D][16], as the kernel takes them: hidden of the count <= 16 rows row[0], row[1] ..., then zeros. */
void flp_row_set_gather(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, const int64_t *row,
                        int count, float *set);

/* What makes z2 of those rows' logits; lanes without a row have a temperature of 1. */
void flp_row_set_transform(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, const int64_t *row, int count,
                           flp_row_transform *transform);
#endif
