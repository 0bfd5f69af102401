/* Online statistics of logits, of sixteen rows at a time: each row has a vector lane. */
#ifndef FLP_CPU_ROW_STATISTICS_H
#define FLP_CPU_ROW_STATISTICS_H
#include "cpu/vector_math.h"
#include <stdint.h>

enum { FLP_LANES = 16, FLP_LANE_VECTORS = FLP_LANES / 4 };

/* One number for each of the sixteen rows, as four vectors or as an array. */
typedef union {
    flp_float4 vector[FLP_LANE_VECTORS];
    float lane[FLP_LANES];
} flp_lanes;

typedef union {
    flp_int4 vector[FLP_LANE_VECTORS];
    int32_t lane[FLP_LANES];
} flp_int_lanes;

/* Let z be the logit after the softcap, c tanh(logit / c), or the logit itself where c is 0; and d = (z - origin) scale. Because z - origin is computed before
 * it is multiplied by the scale, it loses no digits, however large the logits are. */
typedef struct {
    double sum[FLP_LANES];       /* sum of 2^d over the entries except the target */
    double moment[FLP_LANES];    /* sum of d 2^d over the same entries, for the entropy; only where the transform has wants_moment */
    flp_lanes origin;            /* the largest z of these entries; -inf where all of them are -inf or NaN, or there is none */
    flp_lanes largest;           /* the largest logit of all entries, before softcap and temperature; a NaN is never the largest */
    flp_int_lanes largest_index; /* the smallest index of that logit; 0 where all logits are -inf or NaN */
} flp_row_statistics;

typedef struct {
    flp_lanes scale;  /* log2(e) / temperature */
    float softcap;    /* c; 0: none */
    int wants_moment; /* 1: moments are summed */
} flp_row_transform;

/* Each row's target, whose term the row's sums leave out (cpu/target_share.h says why). */
typedef struct {
    int32_t index[FLP_LANES]; /* -1: none */
    float z[FLP_LANES];       /* the target's z; written by the call that adds the target's entry */
} flp_row_targets;

void flp_row_statistics_clear(flp_row_statistics *statistics);

/* Adds the vocabulary entries first .. first + count - 1 to the statistics. logits [count][16], 16-byte aligned, are without the bias; on return they hold z.
 * bias [count] is added to them before anything else. targets: NULL for none. width: floats in a vector, 4 or flp_vector_width(); all widths give the same
 * bits. */
void flp_row_statistics_add_by(int width, flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias, float *logits, int count,
                               int32_t first, flp_row_targets *targets);
static inline void flp_row_statistics_add(flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias, float *logits, int count,
                                          int32_t first, flp_row_targets *targets)
{
    flp_row_statistics_add_by(flp_vector_width(), statistics, transform, bias, logits, count, first, targets);
}

/* Merges the statistics of `later`, whose entries have larger indices, into `statistics`. */
void flp_row_statistics_merge(flp_row_statistics *statistics, const flp_row_statistics *later, const flp_row_transform *transform);
#endif
