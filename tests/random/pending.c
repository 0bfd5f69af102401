/* The table of what is not yet drawn. */
#include "random/pending.h"

#include <math.h>
#include <stdlib.h>

static int is_large(const flp_random_problem *p)
{
    const double hottest = p->row_temperature == 2 ? 0x1p-20 : p->row_temperature ? 0.1 : p->temperature > 0 ? p->temperature : 1;

    return (fabs(p->shift) + 4 * p->scale + p->margin) / hottest > 1e5;
}

static int has_level(const flp_random_problem *p)
{
    return p->shape == FLP_RANDOM_LEVEL || p->shape == FLP_RANDOM_SOME_LEVEL;
}

static int is_tight(const flp_random_problem *p)
{
    return p->budget >= 0;
}

static int is_plan_for_more(const flp_random_problem *p)
{
    return p->operator == FLP_RANDOM_CROSS_ENTROPY && p->spare > 0;
}

static int has_narrow_rows(const flp_random_problem *p)
{
    return p->operator <= FLP_RANDOM_CROSS_ENTROPY && p->grad_hidden == FLP_F32 && (p->d + p->grad_hidden_gap) % 4 != 0 && p->columns;
}

static const struct {
    int (*is_so)(const flp_random_problem *problem);
    const char *reason;
} not_yet_drawn[] = {
    { is_large, "logits of 1e5 and more lose their probabilities" },
    { has_level, "rows of equal very large logits" },
    { is_tight, "memory budgets" },
    { has_narrow_rows, "sm_90a writes grad_hidden by a tensor map whose rows are no multiple of 16 bytes" },
    { is_plan_for_more, "plans of the cross-entropy for many rows, run with few" },
};

static int draws_all(void)
{
    static int known, all;

    if (!known)
        all = getenv("FUSEDLOGP_RANDOM_ALL") != NULL, known = 1;
    return all;
}

flp_random_pending_bounds flp_random_pending(void)
{
    return (flp_random_pending_bounds){ .likely_targets = !draws_all() };
}

const char *flp_random_pending_reason(const flp_random_problem *problem)
{
    for (size_t i = 0; !draws_all() && i < sizeof(not_yet_drawn) / sizeof(*not_yet_drawn); i++)
        if (not_yet_drawn[i].is_so(problem))
            return not_yet_drawn[i].reason;
    return NULL;
}
