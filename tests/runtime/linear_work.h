/* The work of linear_logp's backward and of linear_cross_entropy, for tests of their chunks and budgets. */
#ifndef FLP_TESTS_LINEAR_WORK_H
#define FLP_TESTS_LINEAR_WORK_H
#include "operators/linear/linear_workspace.h"

/* A problem in bf16 throughout, but for grad_weight. */
flp_linear_logp_backward_problem linear_work_sized(int64_t rows, int64_t hidden, int64_t vocab, flp_dtype grad_weight);
/* The problem with its defaults filled in. */
flp_linear_logp_backward_problem linear_work_normal(flp_linear_logp_backward_problem problem);
/* The work of a backward alone, or behind a forward that leaves saved exponentials where it can, with the chunks that its budget allows. normal must outlive it. */
flp_linear_work linear_work_of(const flp_linear_logp_backward_problem *normal, int with_forward);
/* The same as linear_cross_entropy has it. */
flp_linear_work linear_work_with_losses(const flp_linear_logp_backward_problem *normal);
/* What the generator is told of the work's chunks, in static memory: one hint at a time. */
const char *linear_work_hint(const flp_linear_work *work);
/* The workspace of a call of so many rows, and its bytes. */
flp_workspace linear_work_laid_out(const flp_linear_work *work, int64_t rows);
int64_t linear_work_bytes(const flp_linear_work *work, int64_t rows);
#endif
