/* Random numbers of the tester, the same on every machine, and the numbers of the dtypes. */
#ifndef FLP_TESTS_RANDOM_NUMBERS_H
#define FLP_TESTS_RANDOM_NUMBERS_H
#include <stdint.h>

/* A sequence of draws. */
typedef struct {
    uint64_t state;
} flp_random_numbers;

flp_random_numbers flp_random_numbers_from(uint64_t seed, uint64_t index);
uint64_t flp_random_numbers_next(flp_random_numbers *numbers);
int64_t flp_random_numbers_below(flp_random_numbers *numbers, int64_t count); /* 0 .. count - 1 */
int flp_random_numbers_chance(flp_random_numbers *numbers, int percent);
double flp_random_numbers_uniform(flp_random_numbers *numbers); /* 0 .. 1 */
double flp_random_numbers_normal(flp_random_numbers *numbers);  /* nearly N(0, 1): the sum of four uniform ones */

/* From a value to the dtype's next; of values beyond its largest, of that. */
double flp_random_unit_of(int dtype, double value);
/* The nearest number of the dtype, infinite beyond its largest. */
double flp_random_round(int dtype, double value);
#endif
