/* Sets of sixteen rows of hidden, gathered from anywhere and brought into fp32, one row a vector lane. */
#ifndef FLP_CPU_ROW_SET_H
#define FLP_CPU_ROW_SET_H
#include "cpu/row_statistics.h"
#include "fusedlogp.h"

/* The arguments that linear_logp and its backward share. */
typedef struct {
    const void *hidden, *target;
    int64_t ignore_index;
    int ignores;        /* 1: rows with that target are ignored; 0: none is */
    double temperature; /* > 0; 0: 1 */
    const float *row_temperature;
} flp_row_inputs;

int64_t flp_row_target(const flp_linear_logp_problem *problem, const flp_row_inputs *inputs, int64_t row);
int flp_row_is_ignored(const flp_row_inputs *inputs, int64_t target);
int flp_row_in_vocabulary(const flp_linear_logp_problem *problem, int64_t target);
double flp_row_temperature(const flp_row_inputs *inputs, int64_t row);

/* set [D][16]: hidden of the count <= 16 rows row[0], row[1] ..., then zeros. */
void flp_row_set_gather(const flp_linear_logp_problem *problem, const flp_row_inputs *inputs, const int64_t *row, int count, float *set);

/* What makes z2 of those rows' logits; lanes without a row have a temperature of 1. */
void flp_row_set_transform(const flp_linear_logp_problem *problem, const flp_row_inputs *inputs, const int64_t *row, int count,
                           flp_row_transform *transform);
#endif
