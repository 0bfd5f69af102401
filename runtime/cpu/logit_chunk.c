/* Brings blocks of the weight into fp32 panels and multiplies them with the rows. */
#include "cpu/logit_chunk.h"
#include "cpu/convert.h"

/* Fewer sets of rows than this read an fp32 weight where it lies: copying it would cost more than it saves. */
enum { LEAST_SETS_TO_COPY = 3 };

/* A block of the weight: entry e (of the chunk), k (of the block) at data[e / entries * group_stride + e % entries * entry_stride + k * depth_stride]. */
typedef struct {
    const float *data;
    int64_t group_stride, entry_stride, depth_stride;
} weight_block;

/* weight [V, D]: the rows as they are. */
static weight_block copy_rows(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const unsigned char *from, int width,
                              int depth, float *panel)
{
    int64_t row_bytes = problem->weight_stride * flp_dtype_bytes(problem->dtype);
    for (int e = 0; e < width; e++)
        flp_convert_to_f32(problem->dtype, from + e * row_bytes, panel + e * FLP_CHUNK_DEPTH, (size_t)depth);
    return (weight_block){panel, kernel->entries * FLP_CHUNK_DEPTH, FLP_CHUNK_DEPTH, 1};
}

/* weight [D, V]: the entries of one microkernel side by side, for each k, so that it reads on and on. */
static weight_block copy_columns(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const unsigned char *from, int width,
                                 int depth, float *panel)
{
    int64_t row_bytes = problem->weight_stride * flp_dtype_bytes(problem->dtype), group_stride = (int64_t)kernel->entries * FLP_CHUNK_DEPTH;
    float line[FLP_CHUNK_COLUMNS];
    for (int k = 0; k < depth; k++) {
        flp_convert_to_f32(problem->dtype, from + k * row_bytes, line, (size_t)width);
        float *to = panel + (int64_t)k * kernel->entries;
        for (int e = 0; e < width; to += group_stride)
            for (int i = 0; i < kernel->entries && e < width; i++) to[i] = line[e++];
    }
    return (weight_block){panel, group_stride, 1, kernel->entries};
}

static weight_block load_block(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first,
                               int width, int64_t begin, int depth, int sets, float *panel)
{
    int64_t stride = problem->weight_stride;
    int columns = problem->weight_layout == FLP_HIDDEN_VOCAB;
    int64_t at = columns ? begin * stride + first : first * stride + begin;
    const unsigned char *from = (const unsigned char *)weight + at * flp_dtype_bytes(problem->dtype);
    if (columns) return copy_columns(kernel, problem, from, width, depth, panel);
    int in_place = problem->dtype == FLP_F32 && sets < LEAST_SETS_TO_COPY && (uintptr_t)from % sizeof(float) == 0;
    if (in_place) return (weight_block){(const float *)from, kernel->entries * stride, stride, 1};
    return copy_rows(kernel, problem, from, width, depth, panel);
}

static void multiply_set(const flp_microkernel *kernel, const weight_block *block, int width, int depth, const float *hidden,
                         float *logits, int accumulate)
{
    int e = 0;
    for (; e + kernel->entries <= width; e += kernel->entries)
        kernel->several(depth, hidden, block->data + e / kernel->entries * block->group_stride, block->entry_stride, block->depth_stride,
                        logits + e * FLP_LANES, accumulate);
    const float *rest = block->data + e / kernel->entries * block->group_stride;
    for (; e < width; e++, rest += block->entry_stride)
        kernel->single(depth, hidden, rest, block->entry_stride, block->depth_stride, logits + e * FLP_LANES, accumulate);
}

void flp_logit_chunk_compute(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first,
                             int width, const float *hidden, int sets, float *panel, float *logits)
{
    for (int64_t begin = 0; begin < problem->hidden; begin += FLP_CHUNK_DEPTH) {
        int depth = begin + FLP_CHUNK_DEPTH < problem->hidden ? FLP_CHUNK_DEPTH : (int)(problem->hidden - begin);
        weight_block block = load_block(kernel, problem, weight, first, width, begin, depth, sets, panel);
        for (int set = 0; set < sets; set++)
            multiply_set(kernel, &block, width, depth, hidden + (set * problem->hidden + begin) * FLP_LANES,
                         logits + set * FLP_CHUNK_COLUMNS * FLP_LANES, begin > 0);
    }
}
