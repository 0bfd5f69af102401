/* Time that passes. */
#ifndef FLP_BASE_CLOCK_H
#define FLP_BASE_CLOCK_H
#include <time.h>

/* Seconds since some moment in the past, which no change of the system's time moves. */
static inline double flp_clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#endif
