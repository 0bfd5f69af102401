/* How linear_logp's backward spends its memory budget, and where its kernels find their scratch inside one workspace. */
#ifndef FLP_PLAN_LINEAR_LOGP_BACKWARD_WORKSPACE_H
#define FLP_PLAN_LINEAR_LOGP_BACKWARD_WORKSPACE_H
#include "fusedlogp.h"
#include "plan/workspace.h"

/* The vocabulary goes by in chunks: for each, dlogit of all rows lies here. Offsets in bytes, each a multiple of FLP_WORKSPACE_ALIGNMENT;
 * -1: not there. Rows that count (not ignored, no bad target) stand close together in gradient, compact, sums and dlogit. */
typedef struct {
    int64_t columns;   /* of a chunk: a multiple of FLP_BACKWARD_COLUMNS, the same for any number of rows. The sums of grad_hidden are
                          added up chunk by chunk, so it decides their bits */
    int64_t gradient;  /* [rows rounded up to 256][32 bytes]: what each row's derivatives need */
    int64_t row, place; /* [rows] i32: where a counting row stands in hidden, and the inverse */
    int64_t counts;    /* one i32: how many rows count; then two f32: dlogit's factor and its inverse */
    int64_t compact;   /* [rows][compact_stride] of hidden's dtype; -1: in grad_hidden, which is written last */
    int64_t sums;      /* [rows][D] f32: grad_hidden's, -1 where not wanted */
    int64_t dlogit;    /* [rows][columns] of hidden's dtype */
    int64_t bytes;     /* of all */
    int64_t compact_stride; /* elements */
} flp_linear_logp_backward_workspace;

enum {
    FLP_BACKWARD_COLUMNS = 256,  /* the least width of a chunk: one tile */
    FLP_BACKWARD_COUNTS_BYTES = 12
};

/* Whatever the problem's memory_budget. The default is what a budget of 0 stands for. */
int64_t flp_linear_logp_backward_least_budget(const flp_linear_logp_backward_problem *normal);
int64_t flp_linear_logp_backward_default_budget(const flp_linear_logp_backward_problem *normal);

/* Within the budget for rows <= the problem's. */
flp_linear_logp_backward_workspace flp_linear_logp_backward_workspace_lay_out(const flp_linear_logp_backward_problem *normal, int64_t rows);
#endif
