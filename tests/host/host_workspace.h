/* Watches the workspaces of the library's executions on the host device: outside its lifetime, a part must not be accessed, and holds garbage. */
#ifndef FLP_TESTS_HOST_WORKSPACE_H
#define FLP_TESTS_HOST_WORKSPACE_H
#include "core/workspace.h"

/* For flp_workspace_watcher. A part's bytes become NaNs when its lifetime begins and when it ends. In a workspace that was not used in the part's first step,
 * such as a backward's that is not its forward's, the part is not alive. */
void flp_host_workspace_watch(const flp_workspace *workspace, int step);

/* Forgets all workspaces. */
void flp_host_workspace_forget(void);
#endif
