/* weighted_sum_backward on the CPU path. */
#include "operators/weighted_sum/weighted_sum_plan.h"
#include "base/status.h"
#include "cpu/convert.h"
#include <stdlib.h>

enum {
    LINE = 1024,      /* columns that a task processes at a time */
    GROUP_LINES = 64, /* lines that are summed together: they bound the memory */
    TILES = 64,       /* at most */
    TILE_ROWS = 64,   /* at least, except in the last tile */
    GROUP_ROWS = 16   /* of grad_x that share one conversion of w */
};

typedef struct {
    const flp_weighted_sum_backward_problem *problem;
    const flp_weighted_sum_backward_args *args;
    int64_t tiles, tile_rows;
    int64_t first_line; /* of the group at work */
    float *partial;     /* [tiles][GROUP_LINES][LINE] */
} job;

static int line_columns(const job *work, int64_t line)
{
    int64_t left = work->problem->forward.columns - line * LINE;
    return left < LINE ? (int)left : LINE;
}

static float *partial_at(const job *work, int64_t tile, int64_t line)
{
    return work->partial + (tile * GROUP_LINES + line - work->first_line) * LINE;
}

static float gradient_at(const job *work, int64_t row)
{
    flp_dtype dtype = work->problem->forward.y_dtype;
    float g;
    flp_convert_to_f32(dtype, (const unsigned char *)work->args->g + row * flp_dtype_bytes(dtype), &g, 1);
    return g;
}

/* ---- grad_w ---- */

/* Sums up one line of one tile. index: that of the pair (line, tile) in the group. */
static void sum_tile(void *data, int64_t index, int thread)
{
    (void)thread;
    const job *work = data;
    const flp_weighted_sum_problem *forward = &work->problem->forward;
    int64_t tile = index % work->tiles, line = work->first_line + index / work->tiles;
    int64_t first = tile * work->tile_rows, end = first + work->tile_rows;
    int count = line_columns(work, line);
    float *sum = partial_at(work, tile, line), x[LINE];
    if (end > work->args->rows)
        end = work->args->rows;
    for (int i = 0; i < count; i++)
        sum[i] = 0;
    for (int64_t row = first; row < end; row++) {
        float g = gradient_at(work, row);
        int64_t at = row * forward->x_stride + line * LINE;
        flp_convert_to_f32(forward->dtype, (const unsigned char *)work->args->x + at * flp_dtype_bytes(forward->dtype), x, (size_t)count);
        for (int i = 0; i < count; i++)
            sum[i] += g * x[i];
    }
}

static void store_line(void *data, int64_t index, int thread)
{
    (void)thread;
    const job *work = data;
    flp_dtype dtype = work->problem->grad_w;
    int64_t line = work->first_line + index;
    unsigned char *to = (unsigned char *)work->args->grad_w + line * LINE * flp_dtype_bytes(dtype);
    int count = line_columns(work, line);
    float *sum = partial_at(work, 0, line), old[LINE];
    for (int64_t tile = 1; tile < work->tiles; tile++) {
        const float *part = partial_at(work, tile, line);
        for (int i = 0; i < count; i++)
            sum[i] += part[i];
    }
    if (work->problem->accumulate) {
        flp_convert_to_f32(dtype, to, old, (size_t)count);
        for (int i = 0; i < count; i++)
            sum[i] += old[i];
    }
    flp_convert_from_f32(dtype, sum, to, (size_t)count);
}

static flp_status compute_grad_w(flp_thread_pool *pool, job *work)
{
    int64_t lines = (work->problem->forward.columns + LINE - 1) / LINE, group = lines < GROUP_LINES ? lines : GROUP_LINES;
    int64_t rows = work->args->rows;
    work->tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    if (work->tiles < 1)
        work->tiles = 1;
    if (work->tiles > TILES)
        work->tiles = TILES;
    work->tile_rows = (rows + work->tiles - 1) / work->tiles;
    size_t bytes = ((size_t)(work->tiles - 1) * GROUP_LINES + (size_t)group) * LINE * sizeof(float);
    work->partial = malloc(bytes);
    if (work->partial == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the CPU path: %zu bytes for grad_w", bytes);
    for (work->first_line = 0; work->first_line < lines; work->first_line += group) {
        int64_t count = lines - work->first_line < group ? lines - work->first_line : group;
        flp_thread_pool_run(pool, count * work->tiles, sum_tile, work);
        flp_thread_pool_run(pool, count, store_line, work);
    }
    free(work->partial);
    return FLP_OK;
}

/* ---- grad_x ---- */

static void scale_group(void *data, int64_t group, int thread)
{
    (void)thread;
    const job *work = data;
    const flp_weighted_sum_backward_problem *problem = work->problem;
    const flp_dtype dtype = problem->grad_x, w_dtype = problem->forward.w_dtype;
    int64_t first = group * GROUP_ROWS, end = first + GROUP_ROWS, lines = (problem->forward.columns + LINE - 1) / LINE;
    float w[LINE], product[LINE];
    if (end > work->args->rows)
        end = work->args->rows;
    for (int64_t line = 0; line < lines; line++) {
        int count = line_columns(work, line);
        flp_convert_to_f32(w_dtype, (const unsigned char *)work->args->w + line * LINE * flp_dtype_bytes(w_dtype), w, (size_t)count);
        for (int64_t row = first; row < end; row++) {
            float g = gradient_at(work, row);
            int64_t at = row * problem->grad_x_stride + line * LINE;
            for (int i = 0; i < count; i++)
                product[i] = g * w[i];
            flp_convert_from_f32(dtype, product, (unsigned char *)work->args->grad_x + at * flp_dtype_bytes(dtype), (size_t)count);
        }
    }
}

/* grad_w comes first, because grad_x may be written over x. */
flp_status flp_weighted_sum_backward_cpu(flp_thread_pool *pool, const flp_weighted_sum_backward_problem *problem, const flp_weighted_sum_backward_args *args)
{
    job work = { .problem = problem, .args = args };
    flp_status status = problem->grad_w != FLP_NONE ? compute_grad_w(pool, &work) : FLP_OK;
    if (status == FLP_OK && problem->grad_x != FLP_NONE)
        flp_thread_pool_run(pool, (args->rows + GROUP_ROWS - 1) / GROUP_ROWS, scale_group, &work);
    return status;
}

const char *flp_weighted_sum_backward_cpu_numerics(void)
{
    return "weighted_sum_backward:cpu1:" FLP_WEIGHTED_SUM_ARITHMETIC;
}
