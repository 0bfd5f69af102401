/* Draws problems, runs them, shrinks what fails, and tells the line that repeats it. */
#ifndef FLP_TESTS_RANDOM_SUITE_H
#define FLP_TESTS_RANDOM_SUITE_H
#include "random/machine.h"
#include "random/problem.h"

/* A family of operators. make gives inputs and truth; run executes on the machine and judges: 1, or 0 and a message. */
typedef struct {
    void *(*make)(const flp_random_problem *problem);             /* called by several threads, as the next */
    void (*warm)(void *state, const flp_random_machine *machine); /* makes the problem's kernels, and tells of no failure */
    int (*run)(void *state, const flp_random_machine *machine, char *message, size_t bytes);
    void (*free)(void *state);
} flp_random_family;

/* Called with the plan and the buffers behind a right execution, where it is set. */
extern void (*flp_random_answered)(const flp_plan *plan, const flp_random_memory *memory);

extern const flp_random_family flp_random_linear_family; /* linear.c */
extern const flp_random_family flp_random_logits_family; /* logits.c */
extern const flp_random_family flp_random_sum_family;    /* sum.c */
extern const flp_random_family flp_random_scale_family;  /* scale.c */

const flp_random_family *flp_random_family_of(const flp_random_problem *problem);

/* All of a main: argv[1], where there is one, is a problem's text to run alone. Environment: FUSEDLOGP_RANDOM_SECONDS, FUSEDLOGP_RANDOM_PROBLEMS,
 * FUSEDLOGP_RANDOM_SEED. seconds, problems: what bounds a run without these. */
int flp_random_suite_main(const flp_random_machine *machine, int argc, char **argv, int problems);
#endif
