/* The shapes of logits_logp's launches, and their scratch. A row's bits depend on none of it. */
#ifndef FLP_PLAN_LOGITS_LOGP_SHAPE_H
#define FLP_PLAN_LOGITS_LOGP_SHAPE_H
#include "jit/manifest.h"

/* Segments whose sums a block of the forward or the fused kernels holds: longer rows meet in scratch. KEEP IN STEP: shared segments
 * (gen/kernels/logits_logp_config.lua). */
enum { FLP_LOGITS_LOGP_SHARED_SEGMENTS = 512 };

typedef struct {
    int32_t segments;  /* of a row */
    int32_t parts;     /* of a row that different blocks read; 1: its sums meet in the block */
    int32_t team_log2; /* log2 of the warps that share a row or a part of one */
    unsigned blocks;
} flp_logits_logp_shape;

/* Of the forward's kernels; rows >= 1. rows: of any number of them. few: a cluster each, of which the device holds `clusters` at once; blocks 0:
 * rows are more, or too long. */
flp_logits_logp_shape flp_logits_logp_shape_rows(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows);
flp_logits_logp_shape flp_logits_logp_shape_few(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows);
/* Of the fused kernel, of which the device holds `clusters` (blocks, where a cluster is one) at once; blocks 0: rows are too few or too long for
 * it, and the forward, the combine and the gradient kernel do it. */
flp_logits_logp_shape flp_logits_logp_shape_fused(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows);
/* Of the gradient kernel. */
flp_logits_logp_shape flp_logits_logp_shape_gradient(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows);

/* Offsets in bytes. partial [rows][segments][2] f32, best likewise, moment [rows][segments] f32, normaliser [rows][4] f32; -1: not wanted. */
typedef struct {
    int64_t partial, best, moment, normaliser;
    int64_t bytes; /* of all */
} flp_logits_logp_scratch;
flp_logits_logp_scratch flp_logits_logp_scratch_lay_out(int64_t rows, int segments, int argmax, int entropy, int normaliser);
#endif
