/* A kernel's role in a plan. The generator gives each selected kernel a role, by which the plan finds the kernel. */
#ifndef FLP_JIT_ROLE_H
#define FLP_JIT_ROLE_H
#include <stdint.h>

/* X(constant, the generator's word). A selection has at most one kernel of each role. */
#define FLP_ROLE_LIST(X)                                                                                               \
    X(TILE, "tile")                     /* linear_logp: logits and sums of a tile; weighted_sum: grad_w of a tile */   \
    X(SAVE_EXP_TILE, "save_exp_tile")   /* in place of `tile`: also stores the exponentials */                         \
    X(OFFSETS, "offsets")               /* the offsets of the saved exponentials */                                    \
    X(COMBINE, "combine")               /* merges the results of several blocks */                                     \
    X(SHARD_TARGETS, "shard_targets")   /* finds each row's target in a shard of the vocabulary */                     \
    X(MERGE, "merge")                   /* merges the shards' statistics of each row */                                \
    X(MERGE_SUMS, "merge_sums")         /* linear_cross_entropy: merges what else its loss takes from the shards */    \
    X(OTHER_SHARDS, "other_shards")     /* linear_logp's backward: clears targets that are in other shards */          \
    X(TOKEN_LOSS, "token_loss")         /* linear_cross_entropy: the loss, between forward and backward */             \
    X(VALID_ROWS, "valid_rows")         /* linear_logp's backward: finds the valid rows */                             \
    X(GATHER, "gather")                 /* copies the valid rows of hidden next to each other */                       \
    X(GRAD_LOGITS, "grad_logits")       /* derivatives of the logits of a chunk of the vocabulary */                   \
    X(HIDDEN_PRODUCT, "hidden_product") /* the matrix product for grad_hidden */                                       \
    X(HIDDEN_FINISH, "hidden_finish")   /* rounds the sums to grad_hidden, in the original order of rows */            \
    X(HIDDEN_SUM, "hidden_sum")         /* adds the parts of hidden_product, where it has parts */                     \
    X(WEIGHT_PRODUCT, "weight_product") /* the matrix product for grad_weight */                                       \
    X(TARGET_ORDER, "target_order")     /* sorts rows by target, whose contributions weight_product adds */            \
    X(BIAS, "bias")                     /* grad_bias */                                                                \
    X(FILTER, "filter")                 /* counts the blocks of derivatives that the filter kept */                    \
    X(ROWS, "rows")                     /* logits_logp: any number of rows */                                          \
    X(FEW_ROWS, "few_rows")             /* logits_logp, so few rows that each gets a cluster; on GPUs with clusters */ \
    X(GRADIENT, "gradient")             /* logits_logp's backward, where each row's lse is known */                    \
    X(FUSED, "fused")                   /* logits_logp: forward and backward in one kernel */                          \
    X(SUM, "sum")                       /* weighted_sum */                                                             \
    X(OUTER, "outer")                   /* weighted_sum's backward: grad_x, an outer product */                        \
    X(SCALE, "scale")                   /* scale */

#define FLP_ROLE_CONSTANT(constant, word) FLP_ROLE_##constant,
typedef enum { FLP_ROLE_LIST(FLP_ROLE_CONSTANT) FLP_ROLES } flp_role;
#undef FLP_ROLE_CONSTANT

/* A set of roles: a bit for each. */
typedef uint32_t flp_role_set;
#define FLP_ROLE_SET(constant) (UINT32_C(1) << FLP_ROLE_##constant)

const char *flp_role_word(flp_role role);
/* The role of this word; FLP_ROLES where no role has it. */
flp_role flp_role_find(const char *word);
#endif
