/* Draws problems. What decides which kernels a problem takes comes from a bounded pool: the cases that tests/host compiles anyway, and a number of
 * profiles of the seed's own. Everything else is drawn freely. */
#ifndef FLP_TESTS_RANDOM_DRAW_H
#define FLP_TESTS_RANDOM_DRAW_H
#include "random/problem.h"

typedef struct {
    uint64_t seed;
    int profiles; /* of the seed's own, for each operator; 0: the known cases alone */
    double work;  /* most multiplications of one product; four times as many of one problem in ten */
    int is_cpu;   /* for what is not yet drawn there */
} flp_random_drawing;

/* The index-th problem of the operator. */
void flp_random_draw(const flp_random_drawing *drawing, flp_random_operator op, int64_t index, flp_random_problem *problem);
#endif
