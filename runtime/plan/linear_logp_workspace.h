/* Where linear_logp's kernels find their scratch inside one workspace. */
#ifndef FLP_PLAN_LINEAR_LOGP_WORKSPACE_H
#define FLP_PLAN_LINEAR_LOGP_WORKSPACE_H
#include "fusedlogp.h"
#include "plan/workspace.h"

/* Offsets in bytes, each a multiple of FLP_WORKSPACE_ALIGNMENT.
 * partial [rows][splits][2] f32   best [rows][splits][2] f32, -1 without argmax   moment [rows][splits] f32, -1 without entropy
 * target_logit [rows][2] f32 */
typedef struct {
    int64_t partial, best, moment, target_logit;
    int64_t bytes; /* of all */
} flp_linear_logp_workspace;

/* rows up to FLP_PROBLEM_ROWS_MAX. */
flp_linear_logp_workspace flp_linear_logp_workspace_lay_out(const flp_linear_logp_problem *problem, int splits, int64_t rows);
#endif
