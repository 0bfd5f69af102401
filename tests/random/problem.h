/* A problem of the random tester: every choice that it depends on, as one flat record with a text, so that a failure can be repeated and shrunk. */
#ifndef FLP_TESTS_RANDOM_PROBLEM_H
#define FLP_TESTS_RANDOM_PROBLEM_H
#include "fusedlogp.h"

typedef enum {
    FLP_RANDOM_LINEAR,
    FLP_RANDOM_LINEAR_BACKWARD,
    FLP_RANDOM_CROSS_ENTROPY,
    FLP_RANDOM_LOGITS,
    FLP_RANDOM_LOGITS_BACKWARD,
    FLP_RANDOM_SUM,
    FLP_RANDOM_SUM_BACKWARD,
    FLP_RANDOM_SCALE,
    FLP_RANDOM_OPERATORS
} flp_random_operator;

typedef enum {                      /* of hidden and weight; of logits; of x */
               FLP_RANDOM_NORMAL,   /* logits with a deviation of 2 scale */
               FLP_RANDOM_ZEROS,    /* weight 0, or logits 0: all equal but for the bias */
               FLP_RANDOM_INTEGERS, /* whole numbers -2 .. 2: logits are exact, with many ties */
               FLP_RANDOM_BITS      /* of scale: any bits, infinite and NaN among them */
} flp_random_values;

/* What the bias adds, or the logits hold, beside their random part; shift is the number that some of these take. */
typedef enum {
    FLP_RANDOM_PLAIN,
    FLP_RANDOM_SHIFT,        /* + shift everywhere */
    FLP_RANDOM_STEP,         /* + shift in the last third */
    FLP_RANDOM_FIRST_MASKED, /* -inf in the first half */
    FLP_RANDOM_LAST_MASKED,
    FLP_RANDOM_ONE_LEFT, /* -inf but for one */
    FLP_RANDOM_ALL_MASKED,
    FLP_RANDOM_LEVEL,      /* exactly shift everywhere, e.g. -1e30 or the dtype's lowest number */
    FLP_RANDOM_SOME_LEVEL, /* exactly shift at every third entry */
    FLP_RANDOM_INFINITE,   /* +inf at one */
    FLP_RANDOM_NAN,        /* NaN at one */
    FLP_RANDOM_TWO_LEVELS, /* exactly shift at every third entry, and 0.9 of it at the others */
    FLP_RANDOM_SHAPES
} flp_random_shape;

typedef enum { FLP_RANDOM_TARGET_ANY, FLP_RANDOM_TARGET_BIASED, FLP_RANDOM_TARGET_ALIGNED } flp_random_likely; /* how the target gets its margin */

typedef enum {
    FLP_RANDOM_G_NORMAL,
    FLP_RANDOM_G_MEAN,
    FLP_RANDOM_G_ONES,
    FLP_RANDOM_G_ZEROS,
    FLP_RANDOM_G_SPARSE,
    FLP_RANDOM_G_INFINITE, /* one row's g_logp is +inf */
    FLP_RANDOM_G_SPREAD,   /* from 2^-40 to 1 */
    FLP_RANDOM_UPSTREAMS
} flp_random_upstream;

enum { FLP_RANDOM_LOSS_PLAIN, FLP_RANDOM_LOSS_POLICY, FLP_RANDOM_LOSS_POLICY_KL, FLP_RANDOM_LOSS_OWN };

/* X(type, name, default, kind). Kinds: KEEP is never changed by shrinking, DROP is set to its default, SIZE is made smaller as well. OPERATOR and
 * DTYPE have words in the text. */
#define FLP_RANDOM_FIELDS(X)                                                                                            \
    X(int, op, 0, KEEP)                                                                                                 \
    X(int64_t, n, 1, SIZE)                                                                                              \
    X(int64_t, v, 1, SIZE)                                                                                              \
    X(int, shards, 0, DROP)    /* of the vocabulary: which of flp_cuttings, from 1 on */                                \
    X(int64_t, spare, 0, DROP) /* rows that the plan has beside the executed n */                                       \
    X(int, bad, 0, DROP)       /* percent of the targets that are outside the vocabulary */                             \
    X(int, ignored, 0, DROP)   /* percent of the targets that are ignore_index */                                       \
    X(int, ignores, 0, DROP)   /* 1: rows with ignore_index are ignored */                                              \
    X(int64_t, ignore_index, 0, DROP)                                                                                   \
    X(int, broken, 0, DROP)          /* percent of the rows that hold a NaN, or an infinite entry */                    \
    X(int, ignored_nan, 0, DROP)     /* rows without a part hold NaN */                                                 \
    X(int, row_temperature, 0, DROP) /* 1: 0.1 to 7; 2: 2^-20 to 2^20; 3: infinite and huge ones among them */          \
    X(double, temperature, 0, DROP)                                                                                     \
    X(int, upstream, 0, DROP)                                                                                           \
    X(double, scale, 1, DROP)                                                                                           \
    X(int, likely, 0, DROP)                                                                                             \
    X(double, margin, 0, DROP)                                                                                          \
    X(int, shape, 0, DROP)                                                                                              \
    X(double, shift, 0, DROP)                                                                                           \
    X(int, values, 0, DROP)                                                                                             \
    X(int, equal_targets, 0, DROP)                                                                                      \
    X(int, outputs, 0, DROP)        /* bits: optional outputs that are left out */                                      \
    X(int, shared_scratch, 0, DROP) /* 1: no workspace is passed */                                                     \
    X(int, dispatched, 0, DROP)     /* 1: by flp_X, not by a plan of the caller's */                                    \
    X(int, poison, 0, DROP)         /* what workspace and outputs hold: 0 ff, 1 c5, 2 7f, 3 00 */                       \
    X(int, repeat, 0, DROP)         /* 1: executed twice, and the second is looked at */                                \
    X(int, again, 0, DROP)          /* with the forward: the backward a second time, for which there is nothing left */ \
    X(int, far_ratio, 0, DROP)      /* of a policy: ratios beyond fp32 in clipped rows */                               \
    X(int, check_targets, 0, DROP)                                                                                      \
    X(int, give_logp, 0, DROP)                                                                                          \
    X(double, budget, -1, DROP) /* -1: the default; 0 .. 1: from the least to room for all */                           \
    X(double, filter, 0, DROP)                                                                                          \
    X(int, loss, 0, DROP)                                                                                               \
    X(int, reduction, 0, DROP)                                                                                          \
    X(int, smoothing, 0, DROP)                                                                                          \
    X(double, label_smoothing, 0, DROP)                                                                                 \
    X(double, lse_square_scale, 0, DROP)                                                                                \
    X(int, classes, 0, DTYPE)                                                                                           \
    X(int, tokens, 0, DROP)                                                                                             \
    X(int, g_loss, 0, DROP)                                                                                             \
    X(int, indexed, 0, DROP) /* logits: 1 a row_index, 2 scattered */                                                   \
    X(int, bad_indices, 0, DROP)                                                                                        \
    X(int, in_place, 0, DROP)                                                                                           \
    X(int, fused, 0, DROP)                                                                                              \
    X(int64_t, vocab_padding, 0, DROP)                                                                                  \
    X(int64_t, hidden_gap, 0, DROP) /* elements between rows: of hidden, x and logits */                                \
    X(int64_t, weight_gap, 0, DROP)                                                                                     \
    X(int64_t, grad_hidden_gap, 0, DROP) /* of grad_hidden, grad_x and grad_logits */                                   \
    X(int64_t, grad_weight_gap, 0, DROP)                                                                                \
    X(int, misalignment, 0, DROP)                                                                                       \
    X(int, target_i32, 0, DROP)                                                                                         \
    X(int, argmax, 0, DROP)                                                                                             \
    X(int, entropy, 0, DROP)                                                                                            \
    X(int, g_lse, 0, DROP)                                                                                              \
    X(int, g_entropy, 0, DROP)                                                                                          \
    X(int, forward, 0, DROP)                                                                                            \
    X(double, softcap, 0, DROP)                                                                                         \
    X(int, accumulate, 0, DROP)                                                                                         \
    X(int, grad_bias, 0, DTYPE) /* of weighted_sum: grad_w is grad_weight */                                            \
    X(int, grad_hidden, 0, DTYPE)                                                                                       \
    X(int, grad_weight, 0, DTYPE)                                                                                       \
    X(int, bias, 0, DTYPE)                                                                                              \
    X(int, w_dtype, 0, DTYPE)                                                                                           \
    X(int, y_dtype, 0, DTYPE)                                                                                           \
    X(double, factor, 1, DROP) /* of scale */                                                                           \
    X(int, columns, 0, DROP)   /* weight is [D, V] */                                                                   \
    X(int, exact, 0, DROP)                                                                                              \
    X(int, portable, 0, DROP)                                                                                           \
    X(int64_t, d, 1, SIZE)                                                                                              \
    X(int, dtype, FLP_BF16, DTYPE)                                                                                      \
    X(int64_t, data, 0, KEEP) /* seed of all data, and of the interleaving of threads on the host machine */

typedef struct {
#define FLP_RANDOM_MEMBER(type, name, otherwise, kind) type name;
    FLP_RANDOM_FIELDS(FLP_RANDOM_MEMBER)
#undef FLP_RANDOM_MEMBER
} flp_random_problem;

flp_random_problem flp_random_problem_default(void);

/* "linear_logp n=33 v=300 ...": the fields that are not their defaults. */
void flp_random_problem_format(const flp_random_problem *problem, char *text, size_t bytes);
/* The inverse; 0 where the text is not a problem's. */
int flp_random_problem_parse(const char *text, flp_random_problem *problem);

/* Makes the fields agree with one another: what the operator does not have goes to its default. */
void flp_random_problem_settle(flp_random_problem *problem);

/* The candidate-th change that makes the problem simpler; 0 where there are no more candidates. What it gives may be what it was given. */
int flp_random_problem_simplify(const flp_random_problem *problem, int candidate, flp_random_problem *simpler);

int64_t flp_random_problem_rows(const flp_random_problem *problem); /* of logits and target: more than n with an index */
#endif
