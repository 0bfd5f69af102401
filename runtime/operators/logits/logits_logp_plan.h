/* logits_logp's plans, both directions: the forward's kernels, which both have, and which of them is launched for how many rows; the shapes of the launches,
 * and their scratch. A row's bits depend on none of these. Also the table of the backward problem's fields, and the CPU path. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_PLAN_H
#define FLP_OPERATORS_LOGITS_LOGP_PLAN_H
#include "core/call.h"
#include "core/workspace.h"
#include "jit/manifest.h"
#include "cpu/thread_pool.h"
#include "params/logits_logp.h"

extern const flp_field *const flp_logits_logp_backward_fields[];

typedef struct {
    int32_t segments;  /* of a row */
    int32_t parts;     /* into which a row is cut, each for another block; 1: a row is not cut, and needs no scratch */
    int32_t team_log2; /* log2 of the warps that share a row or a part of one */
    unsigned blocks;
} flp_logits_logp_shape;

/* The shape of the fused kernel. clusters: how many clusters of it (blocks, where a cluster is one block) the device holds at once. blocks 0: the rows are too
 * few or too long for it, and are processed by the forward, the combine and the gradient kernel. */
flp_logits_logp_shape flp_logits_logp_shape_fused(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows);
/* The shape of the gradient kernel. */
flp_logits_logp_shape flp_logits_logp_shape_gradient(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows);

typedef enum { FLP_LOGITS_STEP_ROWS, FLP_LOGITS_STEP_COMBINE, FLP_LOGITS_STEP_GRADIENT } flp_logits_logp_step;

/* partial and best: [rows][segments][2] f32; moment: [rows][segments] f32; normaliser, which the gradient kernel reads: [rows][4] f32 (params/logits_logp.h) */
typedef enum { FLP_LOGITS_PART_PARTIAL, FLP_LOGITS_PART_BEST, FLP_LOGITS_PART_MOMENT, FLP_LOGITS_PART_NORMALISER } flp_logits_logp_part;

/* Lays out the workspace. argmax, entropy, normaliser: 1: the part is needed. rows 0: no part is. */
void flp_logits_logp_lay_out(int64_t rows, int segments, int argmax, int entropy, int normaliser, flp_workspace *workspace);

/* The forward's kernels. rows: reads any number of rows. combine: merges the parts of rows that several blocks have read. few: reads few rows, each by a
 * cluster of blocks, which needs no scratch; NULL on paths without clusters. */
typedef struct {
    const flp_kernel *rows, *combine, *few;
} flp_logits_logp_forward;

/* Their roles: those that every plan has, and that of `few`. */
#define FLP_LOGITS_LOGP_FORWARD_ROLES (FLP_ROLE_SET(ROWS) | FLP_ROLE_SET(COMBINE))
#define FLP_LOGITS_LOGP_FORWARD_OPTIONAL_ROLES FLP_ROLE_SET(FEW_ROWS)

/* Fills in `forward` from the kernels of a plan, which has those of FLP_LOGITS_LOGP_FORWARD_ROLES. FLP_INTERNAL: a manifest is not acceptable. */
flp_status flp_logits_logp_forward_take(const flp_plan *plan, flp_logits_logp_forward *forward);

/* Checks what both directions require of a kernel's manifest. FLP_INTERNAL. */
flp_status flp_logits_logp_forward_check_manifest(const flp_manifest *manifest);

/* One launch. With shape.parts > 1, the combine follows it. */
typedef struct {
    const flp_kernel *kernel;
    flp_logits_logp_shape shape;
} flp_logits_logp_pass;

/* The launch that reads `rows` rows. vocab, rows >= 1. */
flp_logits_logp_pass flp_logits_logp_forward_choose(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows);

/* The largest number of rows, up to `rows`, with which rows are cut into parts; 0: there is none. Only then is scratch needed. */
int64_t flp_logits_logp_forward_cut_rows(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows);

void flp_logits_logp_forward_describe(const flp_logits_logp_forward *forward, flp_text *text);

typedef struct {
    flp_plan common;
    flp_logits_logp_problem problem; /* with its defaults filled in */
    flp_logits_logp_forward forward; /* GPU paths */
} flp_logits_logp_plan;

FLP_OPERATOR_DECLARE(logits_logp)

/* The launch that reads `rows` rows; GPU paths only. */
flp_logits_logp_pass flp_logits_logp_plan_pass(const flp_logits_logp_plan *plan, int64_t rows);

/* The gradient kernel. With problem.fused, also the kernel that computes forward and gradient in one pass, and the kernels of the forward. */
typedef struct {
    flp_plan common;
    flp_logits_logp_backward_problem problem; /* with its defaults filled in */
    const flp_kernel *gradient;               /* GPU paths, as are all kernels */
    const flp_kernel *fused;                  /* problem.fused; else NULL, and no forward */
    flp_logits_logp_forward forward;
} flp_logits_logp_backward_plan;

FLP_OPERATOR_DECLARE(logits_logp_backward)

/* The fused kernel's launch for `rows` rows; blocks 0: the kernels of the forward and the gradient are launched instead. GPU paths only. */
flp_logits_logp_shape flp_logits_logp_backward_plan_fused(const flp_logits_logp_backward_plan *plan, int64_t rows);

/* ---- the CPU path, both directions: chunks of rows on a thread pool ---- */

/* One call of either direction, checked and with its defaults filled in: the kernels' parameters, except those that come from the plan. A result that is NULL
 * is not requested, an input that is NULL is not given. given_lse, given_entropy and given_logp are inputs of a backward that is not fused. Without
 * grad_logits, the call is a forward alone. */
typedef struct {
    flp_logits_logp_params params;
    flp_dtype dtype;
    double temperature; /* of rows without one of their own */
    CUstream stream;
} flp_logits_logp_call;

/* The order of all sums is fixed, so a row's bits do not depend on the other rows or on the number of threads.
 * *bad_count is increased by the number of rows with a bad target or index, and *bad_first is lowered to the first of them.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_logits_logp_cpu(flp_thread_pool *pool, const flp_logits_logp_call *call, int64_t *bad_count, int64_t *bad_first);
/* The identity of its arithmetic. Static. */
const char *flp_logits_logp_cpu_numerics(void);
#endif
