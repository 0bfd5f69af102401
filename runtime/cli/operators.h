/* All operators, forward and backward, and how to find one from a problem's string. */
#ifndef FLP_CLI_OPERATORS_H
#define FLP_CLI_OPERATORS_H
#include "core/call.h"

/* In the order in which the generator lists them; NULL ends them. */
extern const flp_operator_calls *const flp_operators[];

/* Finds the operator of a canonical string and parses its problem. FLP_BAD_ARGUMENT: which part of text is wrong, and what was wanted. */
flp_status flp_operators_parse(const char *text, const flp_operator_calls **calls, flp_problem_storage *problem);

/* The same for a string that a person typed: dtypes may also be called fp16 and fp32. */
flp_status flp_operators_read(const char *text, const flp_operator_calls **calls, flp_problem_storage *problem);
#endif
