/* linear_logp's arguments, a row each. */
#include "operators/linear/linear_logp_args.h"

#include <stddef.h>

#define AT(argument) offsetof(flp_linear_logp_args, argument)
#define ASKED(field) offsetof(flp_linear_logp_problem, field)

const flp_argument flp_linear_logp_argument_inputs[] = { { "hidden", AT(hidden), .decides = 1 },
                                                         { "weight", AT(weight), .decides = 1 },
                                                         { "bias", AT(bias), .asked_at = ASKED(bias_dtype), .dtype_at = ASKED(bias_dtype) },
                                                         { "target", AT(target), .dtype_at = ASKED(target_dtype) },
                                                         { "row_temperature", AT(row_temperature), .bytes = sizeof(float), .is_optional = 1 },
                                                         { .name = NULL } };
/* The other structs that begin so use it too. */
#define BEGINS_SO(type)                                                                                                                \
    _Static_assert(AT(hidden) == offsetof(type, hidden) && AT(weight) == offsetof(type, weight) && AT(bias) == offsetof(type, bias) && \
                       AT(target) == offsetof(type, target) && AT(row_temperature) == offsetof(type, row_temperature),                 \
                   #type " begins otherwise")
BEGINS_SO(flp_linear_logp_backward_args);
BEGINS_SO(flp_linear_cross_entropy_args);

static const flp_argument outputs[] = { { "logp", AT(logp), .bytes = sizeof(float) },
                                        { "lse", AT(lse), .bytes = sizeof(float), .is_optional = 1 },
                                        { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(entropy), .is_optional = 1 },
                                        { "argmax", AT(argmax), .bytes = sizeof(int32_t), .asked_at = ASKED(argmax), .is_optional = 1 },
                                        { .name = NULL } };
static const flp_argument *const arrays[] = { flp_linear_logp_argument_inputs, outputs, NULL };

const flp_arguments flp_linear_logp_arguments = {
    .args_struct = &flp_sized_linear_logp_args,
    .arrays = arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_linear_logp_args),
    FLP_ARGUMENTS_TARGETS(flp_linear_logp_args),
    .target_dtype_at = ASKED(target_dtype),
    .vocab_at = ASKED(vocab),
};
