/* The shapes of logits_logp's launches, and their scratch. A row's bits depend on none of it. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_SHAPE_H
#define FLP_OPERATORS_LOGITS_LOGP_SHAPE_H
#include "jit/manifest.h"
#include "core/workspace.h"

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

typedef enum { FLP_LOGITS_STEP_ROWS, FLP_LOGITS_STEP_COMBINE, FLP_LOGITS_STEP_GRADIENT } flp_logits_logp_step;

/* [rows][segments][2] f32, likewise, [rows][segments] f32; what the gradient kernel needs of each row: [rows][4] f32 */
typedef enum { FLP_LOGITS_PART_PARTIAL, FLP_LOGITS_PART_BEST, FLP_LOGITS_PART_MOMENT, FLP_LOGITS_PART_NORMALISER } flp_logits_logp_part;

/* argmax, entropy, normaliser: 1: it is wanted. rows 0: nothing is. */
void flp_logits_logp_lay_out(int64_t rows, int segments, int argmax, int entropy, int normaliser, flp_workspace *workspace);
#endif
