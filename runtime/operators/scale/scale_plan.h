/* The plan of scale, the shape of its launch, and its CPU path. */
#ifndef FLP_OPERATORS_SCALE_PLAN_H
#define FLP_OPERATORS_SCALE_PLAN_H
#include "core/call.h"
#include "cpu/thread_pool.h"

typedef struct {
    flp_plan common;
    flp_scale_problem problem; /* with its defaults filled in */
    const flp_kernel *scale;   /* GPU paths */
} flp_scale_plan;

FLP_OPERATOR_DECLARE(scale)

/* x as the kernel and the CPU path take it: rows that touch each other are one row. */
typedef struct {
    int64_t rows, columns, stride;
} flp_scale_shape;

static inline flp_scale_shape flp_scale_shape_of(const flp_scale_problem *problem, int64_t rows)
{
    const int64_t all = rows * problem->columns;

    if (problem->x_stride == problem->columns)
        return (flp_scale_shape){ .rows = 1, .columns = all, .stride = all };
    return (flp_scale_shape){ .rows = rows, .columns = problem->columns, .stride = problem->x_stride };
}

/* The parts of a row of so many columns that blocks take in turn (params/scale.h). */
int64_t flp_scale_parts(flp_dtype dtype, int64_t columns);

/* The number of blocks of the launch for `rows` rows: one for each part. (A persistent grid takes 4 to 6 % longer.) */
unsigned flp_scale_plan_blocks(const flp_scale_plan *plan, int64_t rows);

/* The CPU path. problem and args have been checked: the stride is filled in, rows > 0. Allocates nothing. */
void flp_scale_cpu(flp_thread_pool *pool, const flp_scale_problem *problem, const flp_scale_args *args);

/* The identity of its arithmetic. Static. */
const char *flp_scale_cpu_numerics(void);
#endif
