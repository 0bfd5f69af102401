/* Chooses the operator that scores: logits_logp where the inputs are logits, else linear_logp. */
#include "cli/score.h"

static flp_logits_logp_problem logits_problem(const flp_linear_logp_problem *problem)
{
    return (flp_logits_logp_problem){ .dtype = problem->dtype,
                                      .rows = problem->rows,
                                      .vocab = problem->vocab,
                                      .logits_stride = problem->hidden_stride,
                                      .pointer_alignment = problem->pointer_alignment,
                                      .target_dtype = problem->target_dtype,
                                      .softcap = problem->softcap,
                                      .argmax = problem->argmax,
                                      .entropy = problem->entropy,
                                      .backend = problem->backend };
}

flp_status flp_score_plan_create(flp_context *context, const flp_score_inputs *inputs, const flp_linear_logp_problem *problem, char *text, size_t bytes,
                                 flp_plan **plan)
{
    flp_status status;
    if (inputs->has_logits) {
        flp_logits_logp_problem of_logits = logits_problem(problem);
        status = flp_logits_logp_plan_create(context, &of_logits, plan);
        return status == FLP_OK ? flp_logits_logp_problem_format(&of_logits, text, bytes) : status;
    }
    status = flp_linear_logp_plan_create(context, problem, plan);
    return status == FLP_OK ? flp_linear_logp_problem_format(problem, text, bytes) : status;
}

flp_status flp_score_execute(const flp_score_inputs *inputs, flp_plan *plan, const flp_linear_logp_args *args)
{
    if (!inputs->has_logits)
        return flp_linear_logp_execute(plan, args);
    flp_logits_logp_args of_logits = { .rows = args->rows,
                                       .logits = args->hidden,
                                       .target = args->target,
                                       .ignore_index = args->ignore_index,
                                       .temperature = args->temperature,
                                       .logp = args->logp,
                                       .lse = args->lse,
                                       .entropy = args->entropy,
                                       .argmax = args->argmax,
                                       .workspace = args->workspace,
                                       .workspace_bytes = args->workspace_bytes,
                                       .stream = args->stream,
                                       .flags = args->flags };
    return flp_logits_logp_execute(plan, &of_logits);
}
