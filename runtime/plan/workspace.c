/* Regions of one workspace. */
#include "plan/workspace.h"

int64_t flp_workspace_take(int64_t *used, int64_t bytes)
{
    int64_t offset = *used;

    *used += (bytes + FLP_WORKSPACE_ALIGNMENT - 1) / FLP_WORKSPACE_ALIGNMENT * FLP_WORKSPACE_ALIGNMENT;
    return offset;
}
