/* What a kernel is for in a plan: the generator's selection names its kernels by roles, and a plan finds them by these. */
#ifndef FLP_JIT_ROLE_H
#define FLP_JIT_ROLE_H
#include <stdint.h>

/* X(constant, the generator's word). A selection has no two kernels of one role. */
#define FLP_ROLE_LIST(X)                                                                               \
    X(TILE, "tile")                     /* the logits of a tile, or its sums */                        \
    X(SAVE_EXP_TILE, "save_exp_tile")   /* in place of it: leaves the exponentials, too */             \
    X(COMBINE, "combine")               /* merges what several blocks have computed */                 \
    X(SHARD_TARGETS, "shard_targets")   /* where targets lie in a shard of the vocabulary */           \
    X(MERGE, "merge")                   /* the shards' parts of each row */                            \
    X(MERGE_SUMS, "merge_sums")         /* linear_cross_entropy: what its loss takes of them beside */ \
    X(OTHER_SHARDS, "other_shards")     /* linear_logp's backward: targets that lie in others */       \
    X(TOKEN_LOSS, "token_loss")         /* between linear_logp and its backward */                     \
    X(VALID_ROWS, "valid_rows")         /* linear_logp's backward: which rows are valid */             \
    X(GATHER, "gather")                 /* brings them together */                                     \
    X(GRAD_LOGITS, "grad_logits")       /* dlogit of a chunk of the vocabulary */                      \
    X(HIDDEN_PRODUCT, "hidden_product") /* grad_hidden */                                              \
    X(HIDDEN_FINISH, "hidden_finish")                                                                  \
    X(WEIGHT_PRODUCT, "weight_product") /* grad_weight */                                              \
    X(TARGET_ORDER, "target_order")     /* of the targets, whose contributions that product adds */    \
    X(BIAS, "bias")                     /* grad_bias */                                                \
    X(FILTER, "filter")                 /* counts what the filter kept, where it passes over blocks */ \
    X(ROWS, "rows")                     /* logits_logp: any number of rows */                          \
    X(FEW_ROWS, "few_rows")             /* so few that each has a cluster; where there are clusters */ \
    X(GRADIENT, "gradient")             /* of rows whose lse is known */                               \
    X(FUSED, "fused")                   /* both directions at once */                                  \
    X(SUM, "sum")                       /* weighted_sum */                                             \
    X(OUTER, "outer")                   /* grad_x: an outer product */

#define FLP_ROLE_CONSTANT(constant, word) FLP_ROLE_##constant,
typedef enum { FLP_ROLE_LIST(FLP_ROLE_CONSTANT) FLP_ROLES } flp_role;
#undef FLP_ROLE_CONSTANT

/* Several. */
typedef uint32_t flp_role_set;
#define FLP_ROLE_SET(constant) (UINT32_C(1) << FLP_ROLE_##constant)

const char *flp_role_word(flp_role role);
/* FLP_ROLES where no role has this word. */
flp_role flp_role_find(const char *word);
#endif
