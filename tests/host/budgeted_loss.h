/* Runs a case of linear_cross_entropy on the host device with a memory budget, and with a plan for more rows than the case's. */
#ifndef FLP_TESTS_BUDGETED_LOSS_H
#define FLP_TESTS_BUDGETED_LOSS_H
#include "cross_entropy_cases.h"

/* The case with all that its table leaves out. */
flp_cross_entropy_case flp_budgeted_loss_complete(const flp_cross_entropy_case *given);
/* The same case with so many rows. */
flp_cross_entropy_case flp_budgeted_loss_of_rows(const flp_cross_entropy_case *given, int64_t rows);
/* The least budget for so many rows, as the message that refuses a smaller one names it. */
int64_t flp_budgeted_loss_least(flp_context *context, const flp_cross_entropy_case *c, int64_t rows);
/* Executes a plan for plan_rows rows with the case's, and checks all results. budget 0: the default. */
void flp_budgeted_loss_run(flp_context *context, const flp_cross_entropy_case *given, int64_t plan_rows, int64_t budget, uint64_t seed);
#endif
