/* Regions of one workspace, laid out one behind the other. */
#ifndef FLP_PLAN_WORKSPACE_H
#define FLP_PLAN_WORKSPACE_H
#include <stdint.h>

enum { FLP_WORKSPACE_ALIGNMENT = 256 };

/* The offset of a region of `bytes` behind the *used bytes before it, which it is added to; both multiples of FLP_WORKSPACE_ALIGNMENT. */
int64_t flp_workspace_take(int64_t *used, int64_t bytes);
#endif
