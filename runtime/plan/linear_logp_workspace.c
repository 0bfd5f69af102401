/* Lays out linear_logp's scratch. */
#include "plan/linear_logp_workspace.h"

flp_linear_logp_workspace flp_linear_logp_workspace_lay_out(const flp_linear_logp_problem *problem, int splits, int64_t rows)
{
    const int64_t pair = 2 * (int64_t)sizeof(float);
    flp_linear_logp_workspace workspace = { .best = -1, .moment = -1 };

    workspace.partial = flp_workspace_take(&workspace.bytes, rows * splits * pair);
    if (problem->argmax)
        workspace.best = flp_workspace_take(&workspace.bytes, rows * splits * pair);
    if (problem->entropy)
        workspace.moment = flp_workspace_take(&workspace.bytes, rows * splits * (int64_t)sizeof(float));
    workspace.target_logit = flp_workspace_take(&workspace.bytes, rows * pair);
    return workspace;
}
