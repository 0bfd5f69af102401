/* Brings blocks of the weight into fp32 panels. */
#include "operators/linear/logit_chunk.h"

#include <string.h>

#include "cpu/convert.h"

/* Fewer sets of rows than this read an fp32 weight where it lies: copying it would cost more than it saves. */
enum { LEAST_SETS_TO_COPY = 3 };

static void copy_rows(const flp_linear_logp_problem *problem, const unsigned char *from, int rows, int count, float *panel, int panel_stride)
{
    int64_t row_bytes = problem->weight_stride * flp_dtype_bytes(problem->dtype);
    for (int row = 0; row < rows; row++)
        flp_convert_to_f32(problem->dtype, from + row * row_bytes, panel + row * panel_stride, (size_t)count);
}

flp_weight_block flp_weight_block_load(const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width, int64_t begin, int depth, int sets,
                                       float *panel)
{
    int64_t stride = problem->weight_stride;
    int columns = problem->weight_layout == FLP_HIDDEN_VOCAB;
    int64_t at = columns ? begin * stride + first : first * stride + begin;
    const unsigned char *from = (const unsigned char *)weight + at * flp_dtype_bytes(problem->dtype);
    if (columns) {
        copy_rows(problem, from, depth, width, panel, FLP_CHUNK_COLUMNS);
        return (flp_weight_block){ panel, 1, FLP_CHUNK_COLUMNS };
    }
    if (problem->dtype == FLP_F32 && sets < LEAST_SETS_TO_COPY && (uintptr_t)from % sizeof(float) == 0)
        return (flp_weight_block){ (const float *)from, stride, 1 };
    copy_rows(problem, from, width, depth, panel, FLP_CHUNK_DEPTH);
    return (flp_weight_block){ panel, FLP_CHUNK_DEPTH, 1 };
}

void flp_logit_chunk_compute(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width,
                             const float *hidden, int sets, float *panel, float *logits)
{
    for (int64_t begin = 0; begin < problem->hidden; begin += FLP_CHUNK_DEPTH) {
        int depth = begin + FLP_CHUNK_DEPTH < problem->hidden ? FLP_CHUNK_DEPTH : (int)(problem->hidden - begin);
        flp_weight_block block = flp_weight_block_load(problem, weight, first, width, begin, depth, sets, panel);
        for (int set = 0; set < sets; set++)
            flp_microkernel_multiply(kernel, width, depth, hidden + (set * problem->hidden + begin) * FLP_LANES, block.data, block.entry_stride,
                                     block.depth_stride, logits + set * FLP_CHUNK_COLUMNS * FLP_LANES, begin > 0);
    }
}

void flp_logit_chunk_load_bias(const flp_linear_logp_problem *problem, const void *from, int64_t first, int width, float *bias)
{
    flp_dtype dtype = problem->bias_dtype;
    if (dtype == FLP_NONE)
        memset(bias, 0, (size_t)width * sizeof *bias);
    else
        flp_convert_to_f32(dtype, (const unsigned char *)from + first * flp_dtype_bytes(dtype), bias, (size_t)width);
}
