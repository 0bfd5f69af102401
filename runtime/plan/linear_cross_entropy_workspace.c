/* Lays out linear_cross_entropy's workspace. */
#include "plan/linear_cross_entropy_workspace.h"

#include "plan/workspace.h"

flp_linear_cross_entropy_workspace flp_linear_cross_entropy_workspace_lay_out(int64_t rows, int64_t logit_sums, int64_t forward, int64_t backward,
                                                                              int64_t kept)
{
    const int64_t row_bytes = rows * (int64_t)sizeof(float);
    flp_linear_cross_entropy_workspace workspace = { 0 };
    int64_t *bytes = &workspace.bytes;
    int64_t *const arrays[] = { &workspace.logp, &workspace.lse, &workspace.entropy, &workspace.logit_sum, &workspace.g_logp,
                                &workspace.g_lse, &workspace.g_entropy, &workspace.g_sum };

    for (int i = 0; i < 8; i++)
        *arrays[i] = flp_workspace_take(bytes, row_bytes);
    workspace.logit_sums = flp_workspace_take(bytes, logit_sums * (int64_t)sizeof(float));
    workspace.passes = flp_workspace_take(bytes, kept + forward > backward ? kept + forward : backward);
    workspace.forward = workspace.passes + kept;
    return workspace;
}
