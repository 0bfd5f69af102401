/* Lays out linear_logp's scratch. */
#include "plan/workspace.h"

static int64_t take(flp_workspace *workspace, int64_t bytes)
{
    int64_t offset = workspace->bytes;

    workspace->bytes += (bytes + FLP_WORKSPACE_ALIGNMENT - 1) / FLP_WORKSPACE_ALIGNMENT * FLP_WORKSPACE_ALIGNMENT;
    return offset;
}

flp_workspace flp_workspace_lay_out(int64_t rows, int splits, int argmax)
{
    const int64_t pair = 2 * (int64_t)sizeof(float);
    flp_workspace workspace = { .best = -1 };

    workspace.partial = take(&workspace, rows * splits * pair);
    if (argmax)
        workspace.best = take(&workspace, rows * splits * pair);
    workspace.target_logit = take(&workspace, rows * (int64_t)sizeof(float));
    return workspace;
}
