/* Online statistics of logits: sixteen rows side by side, one a vector lane. */
#ifndef FLP_CPU_ROW_STATISTICS_H
#define FLP_CPU_ROW_STATISTICS_H
#include "cpu/vector_math.h"
#include <stdint.h>

enum { FLP_LANES = 16, FLP_LANE_VECTORS = FLP_LANES / 4 };

/* A number for each of the sixteen rows, as four vectors or as an array. */
typedef union {
    flp_float4 vector[FLP_LANE_VECTORS];
    float lane[FLP_LANES];
} flp_lanes;

typedef union {
    flp_int4 vector[FLP_LANE_VECTORS];
    int32_t lane[FLP_LANES];
} flp_int_lanes;

/* With z = softcap(logit), c tanh(logit / c) or the logit where c is 0, and d = (z - origin) scale: sum of 2^d of all entries but the target. Taking
 * the difference first loses nothing, however large the logits are. */
typedef struct {
    double sum[FLP_LANES];
    double moment[FLP_LANES];    /* sum of d 2^d, for the entropy; only where the transform asks for it */
    flp_lanes origin;            /* the largest z of them; -inf: nothing but -inf and NaN seen */
    flp_lanes largest;           /* logit before softcap and temperature; NaN never wins */
    flp_int_lanes largest_index; /* the smallest index of that value; 0: nothing but -inf and NaN seen */
} flp_row_statistics;

typedef struct {
    flp_lanes scale; /* log2(e) / temperature */
    float softcap;
    int wants_moment;
} flp_row_transform;

/* Each row's target, which has no part in its sums: cpu/target_share.h. */
typedef struct {
    int32_t index[FLP_LANES]; /* -1: none */
    float z[FLP_LANES];       /* written when the target's entry is taken in */
} flp_row_targets;

void flp_row_statistics_clear(flp_row_statistics *statistics);

/* Takes in `count` vocabulary entries from index `first` on. logits [count][16], 16-byte aligned; on return they hold z. bias [count] is added
 * first. targets: NULL for none. By vectors of so many floats, 4 or flp_vector_width(); no bit shows it. */
void flp_row_statistics_add_by(int width, flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias, float *logits, int count,
                               int32_t first, flp_row_targets *targets);
static inline void flp_row_statistics_add(flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias, float *logits, int count,
                                          int32_t first, flp_row_targets *targets)
{
    flp_row_statistics_add_by(flp_vector_width(), statistics, transform, bias, logits, count, first, targets);
}

/* The statistics of both parts; `later` holds larger indices. */
void flp_row_statistics_merge(flp_row_statistics *statistics, const flp_row_statistics *later, const flp_row_transform *transform);
#endif
