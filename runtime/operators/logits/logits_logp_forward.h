/* The forward's kernels, which both directions of logits_logp have, and which of them reads so many rows. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_FORWARD_H
#define FLP_OPERATORS_LOGITS_LOGP_FORWARD_H
#include "operators/logits/logits_logp_shape.h"
#include "core/plan.h"

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
#endif
