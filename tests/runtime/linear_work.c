/* Problems and work of linear operators' backward. */
#include "linear_work.h"
#include "core/operator.h"

#include "assertions.h"
#include "core/problem.h"
#include "operators/linear/linear_budget.h"
#include "operators/linear/linear_logp_backward_plan.h"

flp_linear_logp_backward_problem linear_work_sized(int64_t rows, int64_t hidden, int64_t vocab, flp_dtype grad_weight)
{
    return (flp_linear_logp_backward_problem){ .forward = { .dtype = FLP_BF16, .rows = rows, .hidden = hidden, .vocab = vocab },
                                               .grad_hidden = FLP_BF16,
                                               .grad_weight = grad_weight };
}

flp_linear_logp_backward_problem linear_work_normal(flp_linear_logp_backward_problem problem)
{
    flp_linear_logp_backward_problem normal;

    assert_succeeds(flp_problem_normalize(&flp_linear_logp_backward_operator, &problem, &normal));
    return normal;
}

flp_linear_work linear_work_of(const flp_linear_logp_backward_problem *normal, int with_forward)
{
    flp_linear_logp_backward_problem problem = *normal;
    flp_linear_work work;

    problem.with_forward = with_forward;
    work = flp_linear_budget_backward_work(&problem);
    work.backward = normal;
    work.forward = &normal->forward;
    work.chunks = flp_linear_budget_spend(&work);
    return work;
}

flp_linear_work linear_work_with_losses(const flp_linear_logp_backward_problem *normal)
{
    flp_linear_work work = linear_work_of(normal, 1);

    work.losses = 1;
    work.chunks = flp_linear_budget_spend(&work);
    return work;
}

flp_workspace linear_work_laid_out(const flp_linear_work *work, int64_t rows)
{
    flp_workspace workspace;

    flp_linear_workspace_lay_out(work, rows, &workspace);
    return workspace;
}

int64_t linear_work_bytes(const flp_linear_work *work, int64_t rows)
{
    return linear_work_laid_out(work, rows).bytes;
}

const char *linear_work_hint(const flp_linear_work *work)
{
    static char text[FLP_HINT_BYTES];

    flp_vocab_chunks_hint(work->backward, &work->chunks, text);
    return text;
}
