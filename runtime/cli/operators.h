/* All operators, in both directions, for what is given as a problem's string. */
#ifndef FLP_CLI_OPERATORS_H
#define FLP_CLI_OPERATORS_H
#include "core/call.h"

/* NULL behind the last, in the order in which the generator lists them. */
extern const flp_operator_calls *const flp_operators[];

/* The operator of a canonical string, and its problem. FLP_BAD_ARGUMENT: which part of text, and what was wanted. */
flp_status flp_operators_parse(const char *text, const flp_operator_calls **calls, flp_problem_storage *problem);

/* As somebody types it, with dtypes by either of their names: fp16 as well as f16. Else as above. */
flp_status flp_operators_read(const char *text, const flp_operator_calls **calls, flp_problem_storage *problem);
#endif
