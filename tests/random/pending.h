/* NOT YET DRAWN: what the tree is known to do wrong, with the reason. Each line goes as its mend lands; an empty table is
 * the aim. FUSEDLOGP_RANDOM_ALL=1 draws everything all the same. */
#ifndef FLP_TESTS_RANDOM_PENDING_H
#define FLP_TESTS_RANDOM_PENDING_H
#include "random/problem.h"

/* The reason why the problem is not drawn yet; NULL: there is none. */
const char *flp_random_pending_reason(const flp_random_problem *problem, int is_cpu);
#endif
