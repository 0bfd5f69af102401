/* Sets of sixteen rows of hidden: gathering, and each row's own scalars. */
#include "operators/linear/row_set.h"
#include "cpu/convert.h"
#include "cpu/target_share.h"
#include "operators/linear/vocab_shard.h"
#include <string.h>

enum { GATHER_DEPTH = 256 };

int64_t flp_row_set_target(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, int64_t row)
{
    if (problem->target_dtype == FLP_I32)
        return ((const int32_t *)inputs->target)[row];
    return ((const int64_t *)inputs->target)[row];
}

flp_row_kind flp_row_kind_of(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, int64_t target)
{
    if (inputs->flags & FLP_IGNORE_INDEX && target == inputs->ignore_index)
        return FLP_ROW_IGNORED;
    return target >= 0 && target < flp_vocab_shard_whole(problem) ? FLP_ROW_VALID : FLP_ROW_BAD;
}

void flp_row_count_bad(int64_t row, int64_t *bad_count, int64_t *bad_first)
{
    if (bad_count != NULL)
        ++*bad_count;
    if (bad_first != NULL && (*bad_first < 0 || row < *bad_first))
        *bad_first = row;
}

double flp_row_temperature(const flp_linear_logp_args *inputs, int64_t row)
{
    if (inputs->row_temperature != NULL)
        return flp_row_temperature_within_bounds(inputs->row_temperature[row]);
    return inputs->temperature > 0 ? inputs->temperature : 1;
}

/* Writes element k of the row `from` to to[k * 16], in fp32; zeros where from is NULL. */
static void gather_row(flp_dtype dtype, const unsigned char *from, int64_t depth, float *to)
{
    float line[GATHER_DEPTH] = { 0 };
    for (int64_t begin = 0; begin < depth; begin += GATHER_DEPTH) {
        int64_t count = depth - begin < GATHER_DEPTH ? depth - begin : GATHER_DEPTH;
        if (from != NULL)
            flp_convert_to_f32(dtype, from + begin * flp_dtype_bytes(dtype), line, (size_t)count);
        for (int64_t k = 0; k < count; k++)
            to[(begin + k) * FLP_LANES] = line[k];
    }
}

/* Writes the row's bf16 in pairs, pair i to to[i * 16]. An odd last element is paired with a zero; so are all where from is NULL. */
static void gather_pairs(const unsigned char *from, int64_t depth, float *to)
{
    for (int64_t k = 0; k < depth; k += 2) {
        float pair = 0;
        if (from != NULL)
            memcpy(&pair, from + k * (int64_t)sizeof(uint16_t), k + 1 < depth ? sizeof pair : sizeof(uint16_t));
        memcpy(to + k / 2 * FLP_LANES, &pair, sizeof pair);
    }
}

void flp_row_set_gather(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, const int64_t *row,
                        int count, float *set)
{
    int64_t row_bytes = problem->hidden_stride * flp_dtype_bytes(problem->dtype);
    for (int lane = 0; lane < FLP_LANES; lane++) {
        const unsigned char *from = lane < count ? (const unsigned char *)inputs->hidden + row[lane] * row_bytes : NULL;
        if (kernel->packed == 2)
            gather_pairs(from, problem->hidden, set + lane);
        else
            gather_row(problem->dtype, from, problem->hidden, set + lane);
    }
}

void flp_row_set_transform(const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, const int64_t *row, int count,
                           flp_row_transform *transform)
{
    transform->softcap = (float)problem->softcap;
    for (int lane = 0; lane < FLP_LANES; lane++)
        transform->scale.lane[lane] = (float)flp_row_scale(lane < count ? flp_row_temperature(inputs, row[lane]) : 1);
}
