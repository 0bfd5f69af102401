/* weighted_sum on the CPU path. A row's elements are added to sixteen accumulators in turn, and these are added pairwise. */
#include "operators/weighted_sum/weighted_sum_plan.h"
#include "cpu/convert.h"

enum {
    LANES = 16,
    LINE = 1024,    /* columns that are converted at a time */
    GROUP_ROWS = 16 /* that share one conversion of w */
};

/* Explicit vectors, because compilers vectorise sums at different levels of optimisation, if at all. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

typedef struct {
    const flp_weighted_sum_problem *problem;
    const flp_weighted_sum_args *args;
} job;

/* Fills line [LINE] with count elements in fp32, then zeros up to a multiple of LANES. */
static void load_line(flp_dtype dtype, const void *from, int64_t at, int count, float *line)
{
    flp_convert_to_f32(dtype, (const unsigned char *)from + at * flp_dtype_bytes(dtype), line, (size_t)count);
    for (int i = count; i % LANES != 0; i++)
        line[i] = 0;
}

static float add_pairwise(const lanes *sum)
{
    float part[LANES];
    for (int i = 0; i < LANES; i++)
        part[i] = (*sum)[i];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

static void sum_group(void *data, int64_t group, int thread)
{
    (void)thread;
    const job *work = data;
    const flp_weighted_sum_problem *problem = work->problem;
    const flp_weighted_sum_args *args = work->args;
    int64_t first = group * GROUP_ROWS, left = args->rows - first;
    int rows = left < GROUP_ROWS ? (int)left : GROUP_ROWS;
    lanes sum[GROUP_ROWS] = { 0 };
    _Alignas(64) float x[LINE], w[LINE];
    for (int64_t begin = 0; begin < problem->columns; begin += LINE) {
        int count = problem->columns - begin < LINE ? (int)(problem->columns - begin) : LINE;
        load_line(problem->w_dtype, args->w, begin, count, w);
        for (int row = 0; row < rows; row++) {
            load_line(problem->dtype, args->x, (first + row) * problem->x_stride + begin, count, x);
            for (int i = 0; i < count; i += LANES)
                sum[row] += *(const lanes *)(x + i) * *(const lanes *)(w + i);
        }
    }
    for (int row = 0; row < rows; row++) {
        float y = add_pairwise(&sum[row]);
        flp_convert_from_f32(problem->y_dtype, &y, (unsigned char *)args->y + (first + row) * flp_dtype_bytes(problem->y_dtype), 1);
    }
}

void flp_weighted_sum_cpu(flp_thread_pool *pool, const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args)
{
    job work = { problem, args };
    flp_thread_pool_run(pool, (args->rows + GROUP_ROWS - 1) / GROUP_ROWS, sum_group, &work);
}

const char *flp_weighted_sum_cpu_numerics(void)
{
    return "weighted_sum:cpu1:" FLP_WEIGHTED_SUM_ARITHMETIC;
}
