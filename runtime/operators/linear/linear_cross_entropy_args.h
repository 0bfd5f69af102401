/* The rules for the arguments of linear_cross_entropy, and its token loss' names resolved. */
#ifndef FLP_OPERATORS_LINEAR_CROSS_ENTROPY_ARGS_H
#define FLP_OPERATORS_LINEAR_CROSS_ENTROPY_ARGS_H
#include "operators/linear/linear_cross_entropy_cpu.h"
#include "core/arguments.h"

extern const flp_arguments flp_linear_cross_entropy_arguments;

/* Arguments as this library knows them, of a caller with another header. */
typedef struct {
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[FLP_TOKEN_INPUTS];
    flp_token_parameter parameters[FLP_TOKEN_PARAMETERS];
} flp_cross_entropy_own_args;

/* For flp_operator_calls.take: as flp_sized_take, with the arrays that args has. own: flp_cross_entropy_own_args. */
const void *flp_linear_cross_entropy_args_take(const void *args, void *own, const flp_sizes *sizes, flp_status *status);

/* Beside the table: scalars, and the loss that is written without rows all the same. Fills in call, which borrows args.
 * FLP_BAD_ARGUMENT names the argument, what it got and what was wanted. */
flp_status flp_linear_cross_entropy_args_resolve(const flp_linear_cross_entropy_problem *normal, const flp_token_program *program,
                                                 const flp_linear_cross_entropy_args *args, flp_cross_entropy_call *call);
#endif
