/* The table of what is not yet drawn. */
#include "random/pending.h"

#include <stdlib.h>

static int is_hot_and_low(const flp_random_problem *p)
{
    return p->row_temperature == 3 && p->shift < -1e30;
}

static const struct {
    int (*is_so)(const flp_random_problem *problem);
    const char *reason;
    int on_cpu_alone;
} not_yet_drawn[] = {
    { is_hot_and_low, "on the CPU path a row temperature of 2^125 and more makes logits near the lowest number equal", 1 },
};

static int draws_all(void)
{
    static int known, all;

    if (!known)
        all = getenv("FUSEDLOGP_RANDOM_ALL") != NULL, known = 1;
    return all;
}

const char *flp_random_pending_reason(const flp_random_problem *problem, int is_cpu)
{
    for (size_t i = 0; !draws_all() && i < sizeof(not_yet_drawn) / sizeof(*not_yet_drawn); i++)
        if ((is_cpu || !not_yet_drawn[i].on_cpu_alone) && not_yet_drawn[i].is_so(problem))
            return not_yet_drawn[i].reason;
    return NULL;
}
