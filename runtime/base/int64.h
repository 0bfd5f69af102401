/* Arithmetic on counts and sizes, none of which is negative. */
#ifndef FLP_BASE_INT64_H
#define FLP_BASE_INT64_H
#include <stdint.h>

static inline int64_t flp_int64_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t flp_int64_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The sum; INT64_MAX where it is larger. */
static inline int64_t flp_int64_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static inline int64_t flp_int64_divide_up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

static inline int64_t flp_int64_round_up(int64_t count, int64_t to)
{
    return flp_int64_divide_up(count, to) * to;
}
#endif
