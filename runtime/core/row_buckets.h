/* Buckets of numbers of rows: calls whose numbers of rows are in one bucket share a plan, so that few plans are made. */
#ifndef FLP_CORE_ROW_BUCKETS_H
#define FLP_CORE_ROW_BUCKETS_H
#include <stdint.h>

/* The bucket of a number of rows: log2 of the rows that its plan is made for. A negative number, or one above FLP_PROBLEM_ROWS_MAX, gets a bucket for which no
 * plan is made. Without a tuning, variants change at the ends of buckets only, which a test checks of gen/select: after 64 and 128 rows, with gradients on
 * sm_90a also after 256, 1024 and each later one. Above 2^10 rows, buckets also bound the size that the scratch grows to. KEEP IN STEP: buckets_of_few
 * (gen/select/linear_logp_backward.lua). */
static inline unsigned flp_row_buckets_of(uint64_t rows)
{
    if (rows <= 64)
        return 6;
    if (rows <= 128)
        return 7;
    if (rows <= 256)
        return 8;
    if (rows <= 1024)
        return 10;
    return 64 - (unsigned)__builtin_clzll(rows - 1);
}

/* The number of rows that the plan for a call of `rows` rows, 1 .. FLP_PROBLEM_ROWS_MAX, is made for. */
static inline int64_t flp_row_buckets_rows(int64_t rows)
{
    return INT64_C(1) << flp_row_buckets_of((uint64_t)rows);
}
#endif
