/* Median and quantiles of measured samples. */
#ifndef FLP_BENCH_STATISTICS_H
#define FLP_BENCH_STATISTICS_H
#include <jansson.h>

typedef struct {
    double median, p10, p90; /* p10, p90: the 10 and 90 % quantiles */
} flp_statistics;

/* Sorts values. count >= 1; between two samples a quantile is interpolated. */
flp_statistics flp_statistics_of(double *values, int count);

/* {"median", "p10", "p90"}: the samples' statistics as the results file has them. Sorts values; NULL: no memory. */
json_t *flp_statistics_pack(double *values, int count);
#endif
