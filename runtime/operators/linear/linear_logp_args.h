/* linear_logp's arguments, and those that its backward and linear_cross_entropy begin with. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_ARGS_H
#define FLP_OPERATORS_LINEAR_LOGP_ARGS_H
#include "core/arguments.h"

extern const flp_arguments flp_linear_logp_arguments;
extern const flp_argument flp_linear_logp_argument_inputs[];
#endif
