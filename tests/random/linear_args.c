/* The arguments that name a random problem's buffers. */
#include "random/linear.h"

static void *at(const flp_random_linear *linear, const flp_random_machine *machine, flp_random_role role)
{
    return machine ? flp_random_machine_at(machine, &linear->memory, role) : flp_random_memory_at(&linear->memory, role);
}

static unsigned flags_of(const flp_random_problem *p)
{
    return (p->check_targets ? FLP_CHECK_TARGETS : 0u) | (p->ignores ? FLP_IGNORE_INDEX : 0u);
}

static size_t workspace_bytes(const flp_random_linear *linear)
{
    return linear->memory.buffer[FLP_RANDOM_WORKSPACE].data_bytes;
}

void flp_random_linear_args(const flp_random_linear *linear, const flp_random_machine *machine, flp_linear_logp_args *args)
{
    const flp_random_problem *p = linear->problem;

    *args = (flp_linear_logp_args){ .rows = p->n,
                                    .hidden = at(linear, machine, FLP_RANDOM_HIDDEN),
                                    .weight = at(linear, machine, FLP_RANDOM_WEIGHT),
                                    .bias = at(linear, machine, FLP_RANDOM_BIAS),
                                    .target = at(linear, machine, FLP_RANDOM_TARGET),
                                    .ignore_index = p->ignore_index,
                                    .temperature = p->temperature,
                                    .row_temperature = at(linear, machine, FLP_RANDOM_ROW_TEMPERATURE),
                                    .logp = at(linear, machine, FLP_RANDOM_LOGP),
                                    .lse = at(linear, machine, FLP_RANDOM_LSE),
                                    .entropy = at(linear, machine, FLP_RANDOM_ENTROPY),
                                    .argmax = at(linear, machine, FLP_RANDOM_ARGMAX),
                                    .workspace = at(linear, machine, FLP_RANDOM_WORKSPACE),
                                    .workspace_bytes = workspace_bytes(linear),
                                    .flags = flags_of(p) };
}

void flp_random_linear_backward_args(const flp_random_linear *linear, const flp_random_machine *machine, flp_linear_logp_backward_args *args)
{
    const flp_random_problem *p = linear->problem;

    *args = (flp_linear_logp_backward_args){ .rows = p->n,
                                             .hidden = at(linear, machine, FLP_RANDOM_HIDDEN),
                                             .weight = at(linear, machine, FLP_RANDOM_WEIGHT),
                                             .bias = at(linear, machine, FLP_RANDOM_BIAS),
                                             .target = at(linear, machine, FLP_RANDOM_TARGET),
                                             .ignore_index = p->ignore_index,
                                             .temperature = p->temperature,
                                             .row_temperature = at(linear, machine, FLP_RANDOM_ROW_TEMPERATURE),
                                             .lse = at(linear, machine, p->forward ? FLP_RANDOM_LSE : FLP_RANDOM_GIVEN_LSE),
                                             .entropy = at(linear, machine, p->forward ? FLP_RANDOM_ENTROPY : FLP_RANDOM_GIVEN_ENTROPY),
                                             .logp = at(linear, machine, FLP_RANDOM_GIVEN_LOGP),
                                             .g_logp = at(linear, machine, FLP_RANDOM_G_LOGP),
                                             .g_lse = at(linear, machine, FLP_RANDOM_G_LSE),
                                             .g_entropy = at(linear, machine, FLP_RANDOM_G_ENTROPY),
                                             .grad_hidden = at(linear, machine, FLP_RANDOM_GRAD_HIDDEN),
                                             .grad_weight = at(linear, machine, FLP_RANDOM_GRAD_WEIGHT),
                                             .grad_bias = at(linear, machine, FLP_RANDOM_GRAD_BIAS),
                                             .workspace = at(linear, machine, FLP_RANDOM_WORKSPACE),
                                             .workspace_bytes = workspace_bytes(linear),
                                             .flags = flags_of(p) };
}

static void add_input(flp_random_cross_entropy_call *call, const char *name, const float *values)
{
    if (values)
        call->inputs[call->args.token_input_count++] = (flp_token_input){ name, values };
}

void flp_random_cross_entropy_args(const flp_random_linear *linear, const flp_random_machine *machine, flp_random_cross_entropy_call *call)
{
    const flp_random_problem *p = linear->problem;

    *call = (flp_random_cross_entropy_call){ .args = { .rows = p->n,
                                                       .hidden = at(linear, machine, FLP_RANDOM_HIDDEN),
                                                       .weight = at(linear, machine, FLP_RANDOM_WEIGHT),
                                                       .bias = at(linear, machine, FLP_RANDOM_BIAS),
                                                       .target = at(linear, machine, FLP_RANDOM_TARGET),
                                                       .ignore_index = p->ignore_index,
                                                       .temperature = p->temperature,
                                                       .row_temperature = at(linear, machine, FLP_RANDOM_ROW_TEMPERATURE),
                                                       .class_weights = at(linear, machine, FLP_RANDOM_CLASSES),
                                                       .token_weights = at(linear, machine, FLP_RANDOM_TOKENS),
                                                       .label_smoothing = p->label_smoothing,
                                                       .lse_square_scale = p->lse_square_scale,
                                                       .token_inputs = call->inputs,
                                                       .g_loss = at(linear, machine, FLP_RANDOM_G_LOSS),
                                                       .loss = at(linear, machine, FLP_RANDOM_LOSS),
                                                       .logp = at(linear, machine, FLP_RANDOM_LOGP),
                                                       .lse = at(linear, machine, FLP_RANDOM_LSE),
                                                       .entropy = at(linear, machine, FLP_RANDOM_ENTROPY),
                                                       .grad_hidden = at(linear, machine, FLP_RANDOM_GRAD_HIDDEN),
                                                       .grad_weight = at(linear, machine, FLP_RANDOM_GRAD_WEIGHT),
                                                       .grad_bias = at(linear, machine, FLP_RANDOM_GRAD_BIAS),
                                                       .workspace = at(linear, machine, FLP_RANDOM_WORKSPACE),
                                                       .workspace_bytes = workspace_bytes(linear),
                                                       .flags = flags_of(p) } };
    add_input(call, "reference_logp", at(linear, machine, FLP_RANDOM_REFERENCE_LOGP));
    add_input(call, "advantages", at(linear, machine, FLP_RANDOM_ADVANTAGES));
    add_input(call, "old_logp", at(linear, machine, FLP_RANDOM_OLD_LOGP));
}
