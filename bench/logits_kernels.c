/* Names the kernels that a plan of logits_logp launches. */
#include "logits.h"

#include "operators/logits/logits_logp_plan.h"

static void add(flp_text *names, const flp_kernel *kernel)
{
    flp_text_append(names, "%s%s", names->length ? " + " : "", kernel->manifest.variant);
}

/* The kernel of the rows and, where blocks share a row through scratch, the combine kernel. */
static void add_forward(flp_text *names, const flp_logits_logp_forward *forward, const flp_logits_logp_pass *pass)
{
    add(names, pass->kernel);
    if (pass->shape.parts > 1)
        add(names, forward->combine);
}

static void name_forward(const flp_logits_logp_plan *plan, int64_t rows, flp_text *names)
{
    const flp_logits_logp_pass pass = flp_logits_logp_plan_pass(plan, rows);

    add_forward(names, &plan->forward, &pass);
}

/* A fused backward runs too few rows to fuse through the forward's kernels and the gradient's. */
static void name_backward(const flp_logits_logp_backward_plan *plan, int64_t rows, flp_text *names)
{
    flp_logits_logp_pass pass;

    if (plan->fused && flp_logits_logp_backward_plan_fused(plan, rows).blocks > 0) {
        add(names, plan->fused);
        return;
    }
    if (plan->fused) {
        pass = flp_logits_logp_forward_choose(&plan->forward, plan->common.device.facts.multiprocessors, plan->problem.vocab, rows);
        add_forward(names, &plan->forward, &pass);
    }
    add(names, plan->gradient);
}

void flp_logits_name_kernels(const flp_plan *plan, int is_backward, int64_t rows, flp_text *names)
{
    if (is_backward)
        name_backward(flp_logits_logp_backward_plan_of(plan), rows, names);
    else
        name_forward(flp_logits_logp_plan_of(plan), rows, names);
}
