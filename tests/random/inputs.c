/* What the inputs of every operator are made of: targets, temperatures, shapes, upstream gradients. */
#include "random/inputs.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "reference.h"

int flp_random_poison(const flp_random_problem *problem)
{
    static const unsigned char poisons[] = { 0xff, 0xc5, 0x7f, 0x00 };

    return poisons[problem->poison];
}

flp_random_numbers flp_random_stream(const flp_random_problem *problem, flp_random_role role)
{
    return flp_random_numbers_from((uint64_t)problem->data, (uint64_t)role);
}

/* fp16 takes no magnitudes above 60000 from the reference's encoding. */
void flp_random_encode(int dtype, double value, void *data, int64_t index)
{
    if (dtype == FLP_F16 && isfinite(value) && fabs(value) > 60000)
        value = value < -65000 ? -65504 : copysign(60000, value);
    if (dtype == FLP_F16 && value == -65504)
        memcpy((char *)data + 2 * index, (const uint16_t[]){ 0xfbff }, 2);
    else
        flp_reference_encode((flp_dtype)dtype, value, data, index);
}

int64_t flp_random_strided(int64_t rows, int64_t stride, int64_t columns)
{
    return rows > 0 ? (rows - 1) * stride + columns : 0;
}

static int64_t bad_target(const flp_random_problem *p, flp_random_numbers *numbers)
{
    const int64_t bad[] = { -1, p->v, INT_MAX, INT_MIN, -101, p->v + 1, (1ll << 32) + (p->v > 1), -(1ll << 32), INT64_MAX, INT64_MIN };
    int64_t target;

    do
        target = bad[flp_random_numbers_below(numbers, p->target_i32 ? 6 : 10)];
    while ((p->ignores && target == p->ignore_index) || (target >= 0 && target < p->v));
    return target;
}

void flp_random_fill_targets(const flp_random_problem *p, const flp_random_memory *memory, int64_t rows)
{
    flp_random_numbers numbers = flp_random_stream(p, FLP_RANDOM_TARGET);

    for (int64_t i = 0; i < rows; i++) {
        int64_t target = p->equal_targets || (p->likely == FLP_RANDOM_TARGET_BIASED && flp_random_numbers_chance(&numbers, 70))
                             ? p->v / 2
                             : flp_random_numbers_below(&numbers, p->v);
        if (flp_random_numbers_chance(&numbers, p->bad))
            target = bad_target(p, &numbers);
        if (flp_random_numbers_chance(&numbers, p->ignored))
            target = p->ignore_index;
        if (p->target_i32)
            ((int32_t *)flp_random_memory_at(memory, FLP_RANDOM_TARGET))[i] = (int32_t)target;
        else
            ((int64_t *)flp_random_memory_at(memory, FLP_RANDOM_TARGET))[i] = target;
    }
}

int64_t flp_random_target(const flp_random_problem *p, const flp_random_memory *memory, int64_t row)
{
    const void *targets = flp_random_memory_at(memory, FLP_RANDOM_TARGET);

    return p->target_i32 ? ((const int32_t *)targets)[row] : ((const int64_t *)targets)[row];
}

int flp_random_is_ignored(const flp_random_problem *p, const flp_random_memory *memory, int64_t row)
{
    return p->ignores && flp_random_target(p, memory, row) == p->ignore_index;
}

int flp_random_has_part(const flp_random_problem *p, const flp_random_memory *memory, int64_t row)
{
    const int64_t target = flp_random_target(p, memory, row);

    return !flp_random_is_ignored(p, memory, row) && target >= 0 && target < p->v;
}

void flp_random_fill_temperatures(const flp_random_problem *p, const flp_random_memory *memory, int64_t rows)
{
    static const float usual[] = { 1, 0.1f, 7, 0.7f, 1.3f }, extremes[] = { INFINITY, 0x1p127f, 0x1p-127f };
    flp_random_numbers numbers = flp_random_stream(p, FLP_RANDOM_ROW_TEMPERATURE);
    float *to = flp_random_memory_at(memory, FLP_RANDOM_ROW_TEMPERATURE);

    for (int64_t i = 0; to && i < rows; i++)
        to[i] = p->row_temperature == 3 && flp_random_numbers_chance(&numbers, 40) ? extremes[flp_random_numbers_below(&numbers, 3)]
                : p->row_temperature != 2                                          ? usual[flp_random_numbers_below(&numbers, 5)]
                                                                                   : (float)exp2(40 * flp_random_numbers_uniform(&numbers) - 20);
}

double flp_random_temperature(const flp_random_problem *p, const flp_random_memory *memory, int64_t row)
{
    const float *row_temperature = flp_random_memory_at(memory, FLP_RANDOM_ROW_TEMPERATURE);

    /* Beyond these it counts as the nearest of them. */
    return row_temperature ? fmax(0x1p-64, fmin(row_temperature[row], 0x1p64)) : p->temperature > 0 ? p->temperature : 1;
}

double flp_random_shaped(const flp_random_problem *p, int64_t v, double plain)
{
    const int64_t half = p->v / 2;

    switch (p->shape) {
    case FLP_RANDOM_SHIFT:
        return plain + p->shift;
    case FLP_RANDOM_STEP:
        return v >= p->v - p->v / 3 ? plain + p->shift : plain;
    case FLP_RANDOM_FIRST_MASKED:
        return v < half ? -INFINITY : plain;
    case FLP_RANDOM_LAST_MASKED:
        return v > half ? -INFINITY : plain;
    case FLP_RANDOM_ONE_LEFT:
        return v != half ? -INFINITY : plain;
    case FLP_RANDOM_ALL_MASKED:
        return -INFINITY;
    case FLP_RANDOM_LEVEL:
        return p->shift;
    case FLP_RANDOM_SOME_LEVEL:
        return v % 3 == 1 ? p->shift : plain;
    case FLP_RANDOM_INFINITE:
        return v == p->v / 3 ? INFINITY : plain;
    case FLP_RANDOM_NAN:
        return v == p->v / 3 ? NAN : plain;
    case FLP_RANDOM_TWO_LEVELS:
        return v % 3 == 1 ? p->shift : 0.9 * p->shift;
    default:
        return plain;
    }
}

float flp_random_upstream_value(const flp_random_problem *p, flp_random_role role, int64_t row, int64_t rows, flp_random_numbers *numbers)
{
    const double normal = flp_random_numbers_normal(numbers), uniform = flp_random_numbers_uniform(numbers);

    switch (p->upstream) {
    case FLP_RANDOM_G_MEAN:
        return role == FLP_RANDOM_G_LOGP ? -1 / (float)rows : 0;
    case FLP_RANDOM_G_ONES:
        return role == FLP_RANDOM_G_LOGP ? 1 : 0;
    case FLP_RANDOM_G_ZEROS:
        return 0;
    case FLP_RANDOM_G_SPARSE:
        return row % 2 ? (float)normal : 0;
    case FLP_RANDOM_G_INFINITE:
        return role == FLP_RANDOM_G_LOGP && row == rows / 2 ? INFINITY : (float)normal;
    case FLP_RANDOM_G_SPREAD:
        return (float)(normal * exp2(-40 * uniform));
    default:
        return (float)normal;
    }
}
