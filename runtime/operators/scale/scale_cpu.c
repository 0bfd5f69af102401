/* scale on the CPU path. */
#include "base/int64.h"
#include "cpu/convert.h"
#include "operators/scale/scale_plan.h"

enum {
    LINE = 1024,      /* columns that are converted at a time */
    PIECE = 64 * LINE /* of a row: what a thread takes at a time */
};

typedef struct {
    flp_scale_shape shape;
    int64_t pieces; /* of a row */
    flp_dtype dtype;
    unsigned char *x;
    float factor;
} job;

static void scale_piece(void *data, int64_t index, int thread)
{
    const job *work = data;
    const int64_t first = index % work->pieces * PIECE, end = flp_int64_smaller(first + PIECE, work->shape.columns);
    unsigned char *row = work->x + index / work->pieces * work->shape.stride * flp_dtype_bytes(work->dtype);
    float line[LINE];

    (void)thread;
    for (int64_t at = first; at < end; at += LINE) {
        unsigned char *x = row + at * flp_dtype_bytes(work->dtype);
        const size_t count = (size_t)flp_int64_smaller(LINE, end - at);

        flp_convert_to_f32(work->dtype, x, line, count);
        for (size_t i = 0; i < count; i++)
            line[i] *= work->factor;
        flp_convert_from_f32(work->dtype, line, x, count);
    }
}

void flp_scale_cpu(flp_thread_pool *pool, const flp_scale_problem *problem, const flp_scale_args *args)
{
    job work = { .shape = flp_scale_shape_of(problem, args->rows), .dtype = problem->dtype, .x = args->x, .factor = *args->factor };

    if (work.factor == 1)
        return;
    work.pieces = flp_int64_divide_up(work.shape.columns, PIECE);
    flp_thread_pool_run(pool, work.shape.rows * work.pieces, scale_piece, &work);
}

const char *flp_scale_cpu_numerics(void)
{
    return "scale:cpu1";
}
