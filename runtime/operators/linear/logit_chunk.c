/* Multiplies blocks of the weight with the rows. */
#include "operators/linear/logit_chunk.h"
#include "cpu/convert.h"
#include <string.h>

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
