/* FLP_CHECK_TARGETS: looks at every target before anything is enqueued. */
#ifndef FLP_CORE_TARGETS_H
#define FLP_CORE_TARGETS_H
#include "core/plan.h"

typedef struct {
    const void *target; /* [rows] i32 or i64, where the plan's path reads it */
    flp_dtype dtype;
    int64_t rows, vocab, ignore_index;
    int ignores; /* 1: ignore_index is */
    CUstream stream;
    const int64_t *row_index; /* or NULL: row i's target is target[row_index[i]], 0 .. target_rows - 1 */
    int64_t target_rows;
} flp_targets;

/* On a GPU path copies them to the host, which waits for the stream (FLP_CAPTURING where it is captured).
 * FLP_BAD_TARGET: the first row whose target is neither ignored nor in the vocabulary, and its value, or whose index names none. */
flp_status flp_targets_check(const flp_plan *plan, const flp_targets *wanted);
#endif
