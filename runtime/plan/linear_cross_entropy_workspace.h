/* Where linear_cross_entropy's kernels find their scratch inside one workspace. */
#ifndef FLP_PLAN_LINEAR_CROSS_ENTROPY_WORKSPACE_H
#define FLP_PLAN_LINEAR_CROSS_ENTROPY_WORKSPACE_H
#include <stdint.h>

/* Offsets in bytes, each a multiple of FLP_WORKSPACE_ALIGNMENT. */
typedef struct {
    int64_t logp, lse, entropy, logit_sum;     /* [rows] f32 */
    int64_t g_logp, g_lse, g_entropy, g_sum;   /* [rows] f32 */
    int64_t logit_sums;                        /* [rows at a time][splits] f32 */
    int64_t passes;                            /* the backward's workspace; of one without gradients, the rows that count */
    int64_t forward;                           /* the forward's, in place of what the backward fills last */
    int64_t bytes;                             /* of all */
} flp_linear_cross_entropy_workspace;

/* logit_sums: how many; 0 where no logits are summed up. forward, backward: bytes of their workspaces for so many rows; the forward's begins
 * kept bytes behind the backward's beginning. */
flp_linear_cross_entropy_workspace flp_linear_cross_entropy_workspace_lay_out(int64_t rows, int64_t logit_sums, int64_t forward, int64_t backward,
                                                                              int64_t kept);
#endif
