/* Where linear_logp's kernels find their scratch inside one workspace. */
#ifndef FLP_PLAN_WORKSPACE_H
#define FLP_PLAN_WORKSPACE_H
#include <stdint.h>

enum { FLP_WORKSPACE_ALIGNMENT = 256 };

/* Offsets in bytes, each a multiple of FLP_WORKSPACE_ALIGNMENT.
 * partial [rows][splits][2] f32   best [rows][splits][2] f32, -1 without argmax   target_logit [rows] f32 */
typedef struct {
    int64_t partial, best, target_logit;
    int64_t bytes; /* of all */
} flp_workspace;

/* rows up to FLP_PROBLEM_ROWS_MAX. */
flp_workspace flp_workspace_lay_out(int64_t rows, int splits, int argmax);
#endif
