/* NOT YET DRAWN, or not yet held to its bound: what the tree is known to do wrong, with the reason. Each line goes as its mend lands; an empty table is
 * the aim. FUSEDLOGP_RANDOM_ALL=1 draws and bounds everything all the same. */
#ifndef FLP_TESTS_RANDOM_PENDING_H
#define FLP_TESTS_RANDOM_PENDING_H
#include "random/problem.h"

typedef struct {
    int likely_targets; /* 1: logp = z - lse and 1 - p cancel where the target is likely: the bounds allow it */
} flp_random_pending_bounds;

flp_random_pending_bounds flp_random_pending(void);

/* The reason why the problem is not drawn yet; NULL: there is none. */
const char *flp_random_pending_reason(const flp_random_problem *problem);
#endif
