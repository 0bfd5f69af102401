/* What the inputs of every operator are made of. */
#ifndef FLP_TESTS_RANDOM_INPUTS_H
#define FLP_TESTS_RANDOM_INPUTS_H
#include "random/memory.h"
#include "random/numbers.h"
#include "random/problem.h"

enum { FLP_RANDOM_INPUT_FILL = 0xff };
int flp_random_poison(const flp_random_problem *problem);

/* Each buffer has numbers of its own. */
flp_random_numbers flp_random_stream(const flp_random_problem *problem, flp_random_role role);

/* As flp_reference_encode, of any magnitude. */
void flp_random_encode(int dtype, double value, void *data, int64_t index);

/* Elements of rows that lie apart. */
int64_t flp_random_strided(int64_t rows, int64_t stride, int64_t columns);

void flp_random_fill_targets(const flp_random_problem *problem, const flp_random_memory *memory, int64_t rows);
int64_t flp_random_target(const flp_random_problem *problem, const flp_random_memory *memory, int64_t row);
int flp_random_is_ignored(const flp_random_problem *problem, const flp_random_memory *memory, int64_t row);
int flp_random_has_part(const flp_random_problem *problem, const flp_random_memory *memory, int64_t row); /* neither ignored nor bad */

void flp_random_fill_temperatures(const flp_random_problem *problem, const flp_random_memory *memory, int64_t rows);
double flp_random_temperature(const flp_random_problem *problem, const flp_random_memory *memory, int64_t row);

/* What the problem's shape makes of entry v of the bias, or of a row of logits, that is `plain` else. */
double flp_random_shaped(const flp_random_problem *problem, int64_t v, double plain);

/* Gradient by logp, lse or entropy of a row of `rows`. */
float flp_random_upstream_value(const flp_random_problem *problem, flp_random_role role, int64_t row, int64_t rows, flp_random_numbers *numbers);
#endif
