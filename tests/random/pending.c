/* The table of what is not yet drawn. */
#include "random/pending.h"

#include <stdlib.h>

static int hands_over(const flp_random_problem *p)
{
    return p->operator == FLP_RANDOM_LINEAR_BACKWARD && p->forward;
}

static int has_broken_target(const flp_random_problem *p)
{
    return p->broken > 0 && (p->v == 1 || p->operator >= FLP_RANDOM_LOGITS);
}

static int has_huge_lse(const flp_random_problem *p)
{
    return p->operator == FLP_RANDOM_CROSS_ENTROPY && p->shape == FLP_RANDOM_LEVEL && p->shift < -1e18;
}

static const struct {
    int (*is_so)(const flp_random_problem *problem);
    const char *reason;
} not_yet_drawn[] = {
    { hands_over, "on the CPU path with_forward leaves one fp32 lse" },
    { has_broken_target, "a NaN in the target's own logit: logp 0" },
    { has_huge_lse, "the loss is NaN where lse^2 is infinite" },
};

static int draws_all(void)
{
    static int known, all;

    if (!known)
        all = getenv("FUSEDLOGP_RANDOM_ALL") != NULL, known = 1;
    return all;
}

const char *flp_random_pending_reason(const flp_random_problem *problem)
{
    for (size_t i = 0; !draws_all() && i < sizeof(not_yet_drawn) / sizeof(*not_yet_drawn); i++)
        if (not_yet_drawn[i].is_so(problem))
            return not_yet_drawn[i].reason;
    return NULL;
}
