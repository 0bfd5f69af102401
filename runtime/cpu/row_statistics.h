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

/* sum_v exp(z[v]) = sum * 2^offset. The offset is an integer, so that changing it rounds nothing. */
typedef struct {
    double sum[FLP_LANES];
    double moment[FLP_LANES];    /* sum_v (z2[v] - offset) 2^(z2[v] - offset), for the entropy; only where the transform asks for it */
    flp_lanes offset;            /* -FLT_MAX: nothing but -inf seen */
    flp_lanes largest;           /* logit before softcap and temperature; NaN never wins */
    flp_int_lanes largest_index; /* the smallest index of that value; 0: nothing but -inf and NaN seen */
} flp_row_statistics;

/* z2 = log2(e) / temperature * softcap(logit), the softcap being c tanh(logit / c), or nothing where c is 0. */
typedef struct {
    flp_lanes scale; /* log2(e) / temperature */
    float softcap;
    int wants_moment;
} flp_row_transform;

void flp_row_statistics_clear(flp_row_statistics *statistics);

/* Takes in `count` vocabulary entries from index `first` on. logits [count][16], 16-byte aligned; on return they hold z2.
 * bias [count] is added first. */
void flp_row_statistics_add(flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias, float *logits,
                            int count, int32_t first);

/* The statistics of both parts; `later` holds larger indices. */
void flp_row_statistics_merge(flp_row_statistics *statistics, const flp_row_statistics *later);
#endif
