/* Watches the workspaces of the library's executions on the host device: what lies outside its life may not be touched, and holds garbage. */
#ifndef FLP_TESTS_HOST_WORKSPACE_H
#define FLP_TESTS_HOST_WORKSPACE_H
#include "core/workspace.h"

/* For flp_workspace_watcher. A part's bytes become NaNs when its life begins and when it ends. A part whose first step an execution has passed
 * without having been there (another workspace than its forward's) does not live in it. */
void flp_host_workspace_watch(const flp_workspace *workspace, int step);

/* Nobody has executed anything yet. */
void flp_host_workspace_forget(void);
#endif
