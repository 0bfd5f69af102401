/* Whether a number is right: the one place where bounds meet what a path has written. */
#ifndef FLP_TESTS_RANDOM_JUDGE_H
#define FLP_TESTS_RANDOM_JUDGE_H
#include <stdint.h>

/* bound: what `got` may be off by before its one rounding to the dtype. NaN is right where NaN is wanted, an infinite number where that is; or where
 * rounding, or in fp32 a clamp to the largest number, makes it so. The largest error of each name is kept, as a part of what was allowed. */
int flp_random_is_right(const char *name, int dtype, double got, double want, double bound);

void flp_random_show_largest_errors(void);
#endif
