/* Sorts and interpolates. */
#include "statistics.h"

#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double quantile(const double *sorted, int count, double share)
{
    double place = share * (count - 1);
    int below = (int)place, above = below + 1 < count ? below + 1 : below;

    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

flp_statistics flp_statistics_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return (flp_statistics){ quantile(values, count, 0.5), quantile(values, count, 0.1), quantile(values, count, 0.9) };
}

json_t *flp_statistics_pack(double *values, int count)
{
    flp_statistics s = flp_statistics_of(values, count);

    return json_pack("{s:f, s:f, s:f}", "median", s.median, "p10", s.p10, "p90", s.p90);
}
