/* logits_logp's plan: the forward's kernels, which both directions have, and which of them reads so many rows; the shapes of the launches and their
 * scratch. A row's bits depend on none of these. And the fields of the problems, both directions. */
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
    int32_t parts;     /* of a row that different blocks read; 1: its sums meet in the block */
    int32_t team_log2; /* log2 of the warps that share a row or a part of one */
    unsigned blocks;
} flp_logits_logp_shape;

/* The shape of the fused kernel, of which the device holds `clusters` (blocks, where a cluster is one) at once; blocks 0: rows are too few or too long for
 * it, and the forward, the combine and the gradient kernel do it. */
flp_logits_logp_shape flp_logits_logp_shape_fused(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows);
/* The shape of the gradient kernel. */
flp_logits_logp_shape flp_logits_logp_shape_gradient(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows);

typedef enum { FLP_LOGITS_STEP_ROWS, FLP_LOGITS_STEP_COMBINE, FLP_LOGITS_STEP_GRADIENT } flp_logits_logp_step;

/* [rows][segments][2] f32, likewise, [rows][segments] f32; what the gradient kernel needs of each row: [rows][4] f32 */
typedef enum { FLP_LOGITS_PART_PARTIAL, FLP_LOGITS_PART_BEST, FLP_LOGITS_PART_MOMENT, FLP_LOGITS_PART_NORMALISER } flp_logits_logp_part;

/* argmax, entropy, normaliser: 1: it is wanted. rows 0: nothing is. */
void flp_logits_logp_lay_out(int64_t rows, int segments, int argmax, int entropy, int normaliser, flp_workspace *workspace);

/* rows: any number of them; combine: merges those that several blocks have read. few: so few that each has a cluster of blocks, which needs no
 * scratch; NULL on paths without clusters. */
typedef struct {
    const flp_kernel *rows, *combine, *few;
} flp_logits_logp_forward;

/* Their roles: those that every plan has, and that of `few`. */
#define FLP_LOGITS_LOGP_FORWARD_ROLES (FLP_ROLE_SET(ROWS) | FLP_ROLE_SET(COMBINE))
#define FLP_LOGITS_LOGP_FORWARD_OPTIONAL_ROLES FLP_ROLE_SET(FEW_ROWS)

/* Takes them from the kernels of a plan, which has those of FLP_LOGITS_LOGP_FORWARD_ROLES. FLP_INTERNAL: a manifest. */
flp_status flp_logits_logp_forward_take(const flp_plan *plan, flp_logits_logp_forward *forward);

/* What both directions demand of a kernel's manifest. FLP_INTERNAL. */
flp_status flp_logits_logp_forward_check_manifest(const flp_manifest *manifest);

/* One launch; shape.parts > 1: and the combine behind it. */
typedef struct {
    const flp_kernel *kernel;
    flp_logits_logp_shape shape;
} flp_logits_logp_pass;

/* vocab, rows >= 1. */
flp_logits_logp_pass flp_logits_logp_forward_choose(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows);

/* The most rows up to `rows` that are cut into parts; 0: none are. The only ones that need scratch. */
int64_t flp_logits_logp_forward_cut_rows(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows);

void flp_logits_logp_forward_describe(const flp_logits_logp_forward *forward, flp_text *text);

typedef struct {
    flp_plan common;
    flp_logits_logp_problem problem; /* with its defaults filled in */
    flp_logits_logp_forward forward; /* GPU paths */
} flp_logits_logp_plan;

FLP_OPERATOR_DECLARE(logits_logp)

/* The launches for so many rows; GPU paths only. */
flp_logits_logp_pass flp_logits_logp_plan_pass(const flp_logits_logp_plan *plan, int64_t rows);

/* The gradient kernel, and where the forward is fused into it, the kernel that does both and those of the forward. */
typedef struct {
    flp_plan common;
    flp_logits_logp_backward_problem problem; /* with its defaults filled in */
    const flp_kernel *gradient;               /* GPU paths, as all */
    const flp_kernel *fused;                  /* problem.fused; else NULL, and no forward */
    flp_logits_logp_forward forward;
} flp_logits_logp_backward_plan;

FLP_OPERATOR_DECLARE(logits_logp_backward)

/* The launch that does all for so many rows; blocks 0: the forward's and the gradient's. GPU paths only. */
flp_logits_logp_shape flp_logits_logp_backward_plan_fused(const flp_logits_logp_backward_plan *plan, int64_t rows);

/* ---- on the host, both directions: chunks of rows on a pool of threads ---- */

/* One call of either direction, checked, with its defaults filled in: what its kernels take, but for what is the plan's. What is NULL is not wanted or not
 * given; given_lse, given_entropy and given_logp are those of a backward that knows them; without grad_logits it is the forward alone. */
typedef struct {
    flp_logits_logp_params params;
    flp_dtype dtype;
    double temperature; /* of rows without one of their own */
    CUstream stream;
} flp_logits_logp_call;

/* A fixed order of every sum makes a row's bits independent of the rows beside it and of the number of threads.
 * bad_count, bad_first: bad targets and indices met, and the first such row of the call; only added to / lowered.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_logits_logp_cpu(flp_thread_pool *pool, const flp_logits_logp_call *call, int64_t *bad_count, int64_t *bad_first);
/* The identity of its arithmetic. Static. */
const char *flp_logits_logp_cpu_numerics(void);
#endif
