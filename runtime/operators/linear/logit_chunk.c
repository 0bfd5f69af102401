/* Copies blocks of the weight into panels, in fp32 or as pairs of bf16, and multiplies rows by them. */
#include "operators/linear/logit_chunk.h"

#include <string.h>

#include "cpu/convert.h"
#include "cpu/prefetch.h"

/* With fewer sets of rows, the weight is read in place: copying it would cost more than it saves. */
enum { LEAST_SETS_TO_COPY = 3 };

static void copy_rows(const flp_linear_logp_problem *problem, const unsigned char *from, int rows, int count, float *panel, int panel_stride)
{
    int64_t row_bytes = problem->weight_stride * flp_dtype_bytes(problem->dtype);
    for (int row = 0; row < rows; row++)
        flp_convert_to_f32(problem->dtype, from + row * row_bytes, panel + row * panel_stride, (size_t)count);
}

/* Copies rows of bf16: a word is two neighbours of one row. An odd last element is paired with a zero. */
static void copy_pairs_along(const unsigned char *from, int64_t row_bytes, int rows, int count, float *panel, int panel_stride)
{
    for (int row = 0; row < rows; row++) {
        if (row + FLP_PREFETCH_ROWS < rows)
            flp_prefetch_to_read(from + (row + FLP_PREFETCH_ROWS) * row_bytes, count * (int64_t)sizeof(uint16_t));
        if (count % 2 != 0)
            panel[row * panel_stride + count / 2] = 0;
        memcpy(panel + row * panel_stride, from + row * row_bytes, (size_t)count * sizeof(uint16_t));
    }
}

/* Copies rows of bf16: a word is the same column of two rows, the first row in the low half. */
static void copy_pairs_across(const unsigned char *from, int64_t row_bytes, int rows, int count, float *panel, int panel_stride)
{
    uint16_t low[FLP_CHUNK_DEPTH], high[FLP_CHUNK_DEPTH] = { 0 };
    uint32_t pairs[FLP_CHUNK_DEPTH];
    for (int row = 0; row < rows; row += 2) {
        for (int ahead = row + FLP_PREFETCH_ROWS; ahead < rows && ahead < row + FLP_PREFETCH_ROWS + 2; ahead++)
            flp_prefetch_to_read(from + ahead * row_bytes, count * (int64_t)sizeof(uint16_t));
        memcpy(low, from + row * row_bytes, (size_t)count * sizeof *low);
        if (row + 1 < rows)
            memcpy(high, from + (row + 1) * row_bytes, (size_t)count * sizeof *high);
        else
            memset(high, 0, (size_t)count * sizeof *high);
        for (int i = 0; i < count; i++)
            pairs[i] = low[i] | (uint32_t)high[i] << 16;
        memcpy(panel + row / 2 * panel_stride, pairs, (size_t)count * sizeof *pairs);
    }
}

/* 1: a microkernel can read the block's words in the weight itself, which has one entry after the other. */
static int lies_in_words(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const unsigned char *from, int depth)
{
    if ((uintptr_t)from % sizeof(float) != 0 || problem->weight_stride % kernel->packed != 0 || depth % kernel->packed != 0)
        return 0;
    return flp_dtype_bytes(problem->dtype) * kernel->packed == sizeof(float);
}

flp_weight_block flp_weight_block_load(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width,
                                       int64_t begin, int depth, int sets, float *panel)
{
    int64_t stride = problem->weight_stride, row_bytes = stride * flp_dtype_bytes(problem->dtype);
    int columns = problem->weight_layout == FLP_HIDDEN_VOCAB, panel_depth = FLP_CHUNK_DEPTH / kernel->packed;
    int64_t at = columns ? begin * stride + first : first * stride + begin;
    const unsigned char *from = (const unsigned char *)weight + at * flp_dtype_bytes(problem->dtype);
    if (columns) {
        if (kernel->packed == 2)
            copy_pairs_across(from, row_bytes, depth, width, panel, FLP_CHUNK_COLUMNS);
        else
            copy_rows(problem, from, depth, width, panel, FLP_CHUNK_COLUMNS);
        return (flp_weight_block){ panel, 1, FLP_CHUNK_COLUMNS };
    }
    if (sets < LEAST_SETS_TO_COPY && lies_in_words(kernel, problem, from, depth))
        return (flp_weight_block){ (const float *)from, stride / kernel->packed, 1 };
    if (kernel->packed == 2)
        copy_pairs_along(from, row_bytes, width, depth, panel, panel_depth);
    else
        copy_rows(problem, from, width, depth, panel, panel_depth);
    return (flp_weight_block){ panel, panel_depth, 1 };
}

flp_weight_block flp_weight_block_load_turned(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first,
                                              int width, int64_t begin, int depth, int sets, float *panel)
{
    int64_t stride = problem->weight_stride, row_bytes = stride * flp_dtype_bytes(problem->dtype);
    int columns = problem->weight_layout == FLP_HIDDEN_VOCAB;
    int64_t at = columns ? begin * stride + first : first * stride + begin;
    const unsigned char *from = (const unsigned char *)weight + at * flp_dtype_bytes(problem->dtype);
    if (kernel->packed == 1) {
        flp_weight_block block = flp_weight_block_load(kernel, problem, weight, first, width, begin, depth, sets, panel);
        return (flp_weight_block){ block.data, block.depth_stride, block.entry_stride };
    }
    if (columns) {
        copy_pairs_along(from, row_bytes, depth, width, panel, FLP_CHUNK_DEPTH / 2);
        return (flp_weight_block){ panel, FLP_CHUNK_DEPTH / 2, 1 };
    }
    copy_pairs_across(from, row_bytes, width, depth, panel, FLP_CHUNK_DEPTH);
    return (flp_weight_block){ panel, 1, FLP_CHUNK_DEPTH };
}

void flp_logit_chunk_compute(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width,
                             const float *hidden, int sets, float *panel, float *logits, int64_t logits_stride)
{
    int64_t words = flp_microkernel_words(kernel, problem->hidden);
    for (int64_t begin = 0; begin < problem->hidden; begin += FLP_CHUNK_DEPTH) {
        int depth = begin + FLP_CHUNK_DEPTH < problem->hidden ? FLP_CHUNK_DEPTH : (int)(problem->hidden - begin);
        flp_weight_block block = flp_weight_block_load(kernel, problem, weight, first, width, begin, depth, sets, panel);
        const flp_microkernel_operands operands = { .depth = flp_microkernel_words(kernel, depth),
                                                    .hidden = hidden + begin / kernel->packed * FLP_LANES,
                                                    .hidden_stride = words * FLP_LANES,
                                                    .weight = block.data,
                                                    .entry_stride = block.entry_stride,
                                                    .depth_stride = block.depth_stride,
                                                    .products = logits,
                                                    .products_stride = logits_stride,
                                                    .accumulate = begin > 0 };
        flp_microkernel_multiply(kernel, sets, width, &operands);
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
