/* Fills a case's buffers: inputs from a counter-based generator, guards, gaps and poisoned outputs. */
#include "cases.h"
#include "base/dtype.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256 };
enum { HIDDEN_STREAM = 1, WEIGHT_STREAM, BIAS_STREAM, TARGET_STREAM, TEMPERATURE_STREAM };

/* SplitMix64 of a counter: two rounds, so that neighbouring streams and indices have nothing in common. */
uint64_t flp_case_random(uint64_t stream, uint64_t index)
{
    uint64_t x = stream << 56 ^ index;
    for (int round = 0; round < 2; round++) {
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

double flp_case_random_normal(uint64_t stream, uint64_t index)
{
    uint64_t bits = flp_case_random(stream, index);
    int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return (double)(sum - 2 * 65535) / 37837.23; /* the deviation of four numbers from 0 .. 65535 */
}

/* Where integers stand, -1, 0 or 1 in the first entries alone: a row's largest logit is that of every entry to that of one in 243, so that the
 * first of them lies with any other lane, warp, tile and split than the next. */
static double random_value(const flp_case *c, uint64_t stream, int64_t index, double deviation)
{
    if (c->values == FLP_CASE_INTEGERS)
        return index % c->problem.hidden < 5 ? (double)(flp_case_random(stream, (uint64_t)index) % 3) - 1 : 0;
    return deviation * flp_case_random_normal(stream, (uint64_t)index);
}

int flp_case_allocate(flp_case_buffer *buffer, int64_t data_bytes, int misalignment, int fill)
{
    buffer->offset = GUARD_BYTES + (size_t)misalignment;
    buffer->data_bytes = (size_t)data_bytes;
    buffer->bytes = (buffer->offset + buffer->data_bytes + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    buffer->base = aligned_alloc(GUARD_BYTES, buffer->bytes);
    if (buffer->base != NULL)
        memset(buffer->base, fill, buffer->bytes);
    return buffer->base != NULL;
}

#define ROLE_NAME(role, name) name,
const char *const flp_case_role_names[FLP_CASE_BUFFERS] = { FLP_CASE_INPUT_LIST(ROLE_NAME) FLP_CASE_OUTPUT_LIST(ROLE_NAME) };

static int allocate_all(const flp_case *c, flp_case_data *data)
{
    const flp_linear_logp_problem *p = &c->problem;
    flp_case_buffer *b = data->buffer;
    int64_t weight_rows = p->weight_layout == FLP_VOCAB_HIDDEN ? p->vocab + c->vocab_padding : p->hidden;
    int complete = flp_case_allocate(&b[FLP_CASE_HIDDEN], p->rows * p->hidden_stride * flp_dtype_bytes(p->dtype), c->misalignment, FLP_CASE_INPUT_FILL) &&
                   flp_case_allocate(&b[FLP_CASE_WEIGHT], weight_rows * p->weight_stride * flp_dtype_bytes(p->dtype), c->misalignment, FLP_CASE_INPUT_FILL) &&
                   flp_case_allocate(&b[FLP_CASE_TARGET], p->rows * flp_dtype_bytes(p->target_dtype), 0, FLP_CASE_INPUT_FILL) &&
                   flp_case_allocate(&b[FLP_CASE_LOGP], p->rows * 4, 0, FLP_CASE_OUTPUT_FILL);
    if (p->bias_dtype != FLP_NONE)
        complete = complete && flp_case_allocate(&b[FLP_CASE_BIAS], p->vocab * flp_dtype_bytes(p->bias_dtype), 0, FLP_CASE_INPUT_FILL);
    if (c->rows & FLP_CASE_ROW_TEMPERATURES)
        complete = complete && flp_case_allocate(&b[FLP_CASE_ROW_TEMPERATURE], p->rows * 4, 0, FLP_CASE_INPUT_FILL);
    if (!(c->rows & FLP_CASE_LOGP_ONLY))
        complete = complete && flp_case_allocate(&b[FLP_CASE_LSE], p->rows * 4, 0, FLP_CASE_OUTPUT_FILL);
    if (p->entropy && !(c->rows & FLP_CASE_UNWANTED))
        complete = complete && flp_case_allocate(&b[FLP_CASE_ENTROPY], p->rows * 4, 0, FLP_CASE_OUTPUT_FILL);
    if (p->argmax && !(c->rows & FLP_CASE_UNWANTED))
        complete = complete && flp_case_allocate(&b[FLP_CASE_ARGMAX], p->rows * 4, 0, FLP_CASE_OUTPUT_FILL);
    return complete;
}

static void *data_of(flp_case_data *data, flp_case_role role)
{
    return data->buffer[role].base + data->buffer[role].offset;
}

static int is_ignored(const flp_case *c, int64_t row)
{
    return (c->rows & FLP_CASE_ALL_IGNORED) || ((c->rows & FLP_CASE_IGNORED_ROWS) && row % 3 == 1);
}

static void fill_hidden(const flp_case *c, void *hidden)
{
    const flp_linear_logp_problem *p = &c->problem;
    for (int64_t i = 0; i < p->rows; i++) {
        for (int64_t d = 0; d < p->hidden; d++) {
            double value = random_value(c, HIDDEN_STREAM, i * p->hidden + d, 1);
            if (c->margin > 0 && d == 0)
                value = (double)(i % 9) / 8;
            if ((c->rows & FLP_CASE_IGNORED_NAN) && is_ignored(c, i))
                value = NAN;
            flp_reference_encode(p->dtype, value, hidden, i * p->hidden_stride + d);
        }
        int64_t place = i % p->hidden;
        if ((c->rows & FLP_CASE_NAN_ROWS) && i % 5 == 2)
            flp_reference_encode(p->dtype, NAN, hidden, i * p->hidden_stride + place);
        if ((c->rows & FLP_CASE_NAN_ROWS) && i % 5 == 4)
            flp_reference_encode(p->dtype, INFINITY, hidden, i * p->hidden_stride + place);
    }
}

static void store_last_bit_nan(flp_dtype dtype, void *to, int64_t at)
{
    if (dtype == FLP_F32)
        ((uint32_t *)to)[at] = 0x7f800001;
    else
        ((uint16_t *)to)[at] = dtype == FLP_BF16 ? 0x7f81 : 0x7c01;
}

static void fill_weight(const flp_case *c, void *weight)
{
    const flp_linear_logp_problem *p = &c->problem;
    double deviation = c->values == FLP_CASE_ZEROS ? 0 : 2 / sqrt((double)p->hidden);
    int64_t nan_entry = (c->rows & FLP_CASE_NAN_WEIGHT) ? p->vocab / 3 : -1;
    for (int64_t v = 0; v < p->vocab + c->vocab_padding; v++) {
        for (int64_t d = 0; d < p->hidden; d++) {
            double value = v < p->vocab ? random_value(c, WEIGHT_STREAM, v * p->hidden + d, deviation) : v % 2 ? 5e4 : NAN;
            if (c->margin > 0 && d == 0)
                value = v == p->vocab / 2 ? c->margin : 0;
            int64_t at = p->weight_layout == FLP_VOCAB_HIDDEN ? v * p->weight_stride + d : d * p->weight_stride + v;
            if (v == nan_entry && d == p->hidden / 2)
                store_last_bit_nan(p->dtype, weight, at);
            else
                flp_reference_encode(p->dtype, value, weight, at);
        }
    }
}

static double bias_value(const flp_case *c, int64_t v)
{
    int64_t vocab = c->problem.vocab;
    double plain = random_value(c, BIAS_STREAM, v, 1);
    switch (c->bias) {
    case FLP_CASE_UP:
        return plain + 1e4;
    case FLP_CASE_DOWN:
        return plain - 1e4;
    case FLP_CASE_NEGATIVE:
        return plain - 50;
    case FLP_CASE_STEP_200:
        return v < vocab - 300 ? plain : plain + 200;
    case FLP_CASE_STEP_2000:
        return v < vocab - 300 ? plain : plain + 2000;
    case FLP_CASE_FIRST_MASKED:
        return v < vocab / 2 ? -INFINITY : plain;
    case FLP_CASE_LAST_MASKED:
        return v >= vocab / 2 ? -INFINITY : plain;
    case FLP_CASE_ONE_LEFT:
        return v < vocab - 1 ? -INFINITY : plain;
    case FLP_CASE_ALL_MASKED:
        return -INFINITY;
    case FLP_CASE_PLUS_INFINITY:
        return v == vocab / 3 ? INFINITY : plain;
    case FLP_CASE_ONE_LIKELY:
        return v == vocab / 3 ? log(1.5 * (double)vocab) : 0;
    case FLP_CASE_BIAS_NAN:
        return v == vocab / 3 ? NAN : plain;
    case FLP_CASE_1E30_DOWN:
        return plain - 1e30;
    case FLP_CASE_LOWEST:
        return -FLT_MAX;
    default:
        return plain;
    }
}

/* Outside the vocabulary: just so, far, and beyond 32 bits with low bits that look right. Index 0 .. 3 fit an int32. */
static int64_t bad_target(const flp_case *c, int64_t index)
{
    const int64_t bad[] = { -1, c->problem.vocab, INT_MAX, c->rows & FLP_CASE_NONE_IGNORED ? -100 : -101, (1ll << 32) + 3, -(1ll << 32), INT64_MAX, INT64_MIN };
    return bad[index % (c->problem.target_dtype == FLP_I32 ? 4 : 8)];
}

static int64_t target_value(const flp_case *c, int64_t row)
{
    if (is_ignored(c, row))
        return c->ignore_index;
    if ((c->rows & FLP_CASE_BAD_TARGETS) && row % 3 != 0)
        return bad_target(c, row / 3 * 2 + row % 3 - 1);
    if (c->rows & FLP_CASE_BOUNDARY_TARGETS)
        return ((row + 1) / 2 * 256 - row % 2 + c->problem.vocab) % c->problem.vocab;
    if (c->rows & FLP_CASE_EQUAL_TARGETS)
        return c->problem.vocab / 2;
    if (row == 1)
        return c->problem.vocab - 1;
    return row == 0 ? 0 : (int64_t)(flp_case_random(TARGET_STREAM, (uint64_t)row) % (uint64_t)c->problem.vocab);
}

static void fill_rows(const flp_case *c, flp_case_data *data)
{
    static const float temperatures[] = { 1, 0.1f, 7, 0.7f, 1.3f };
    for (int64_t i = 0; i < c->problem.rows; i++) {
        int64_t target = target_value(c, i);
        if (c->problem.target_dtype == FLP_I32)
            ((int32_t *)data_of(data, FLP_CASE_TARGET))[i] = (int32_t)target;
        else
            ((int64_t *)data_of(data, FLP_CASE_TARGET))[i] = target;
        if (c->rows & FLP_CASE_ROW_TEMPERATURES)
            ((float *)data_of(data, FLP_CASE_ROW_TEMPERATURE))[i] = temperatures[flp_case_random(TEMPERATURE_STREAM, (uint64_t)i) % 5];
    }
}

int flp_case_make_data(const flp_case *c, flp_case_data *data)
{
    *data = (flp_case_data){ 0 };
    if (!allocate_all(c, data)) {
        flp_case_free_data(data);
        return 0;
    }
    fill_hidden(c, data_of(data, FLP_CASE_HIDDEN));
    fill_weight(c, data_of(data, FLP_CASE_WEIGHT));
    if (c->problem.bias_dtype != FLP_NONE)
        for (int64_t v = 0; v < c->problem.vocab; v++)
            flp_reference_encode(c->problem.bias_dtype, bias_value(c, v), data_of(data, FLP_CASE_BIAS), v);
    fill_rows(c, data);
    return 1;
}

void flp_case_free_data(flp_case_data *data)
{
    for (int role = 0; role < FLP_CASE_BUFFERS; role++)
        free(data->buffer[role].base);
    *data = (flp_case_data){ 0 };
}

void flp_case_poison_outputs(flp_case_data *data)
{
    for (int role = FLP_CASE_LOGP; role < FLP_CASE_BUFFERS; role++)
        if (data->buffer[role].base != NULL)
            memset(data->buffer[role].base, FLP_CASE_OUTPUT_FILL, data->buffer[role].bytes);
}

void flp_case_args(const flp_case *c, const flp_case_data *data, void *const *bases, flp_linear_logp_args *args)
{
    void *at[FLP_CASE_BUFFERS] = { 0 };
    for (int role = 0; role < FLP_CASE_BUFFERS; role++) {
        unsigned char *base = bases != NULL ? bases[role] : data->buffer[role].base;
        if (data->buffer[role].base != NULL)
            at[role] = base + data->buffer[role].offset;
    }
    *args = (flp_linear_logp_args){ .rows = c->problem.rows,
                                    .hidden = at[FLP_CASE_HIDDEN],
                                    .weight = at[FLP_CASE_WEIGHT],
                                    .bias = at[FLP_CASE_BIAS],
                                    .target = at[FLP_CASE_TARGET],
                                    .ignore_index = c->ignore_index,
                                    .flags = c->rows & FLP_CASE_NONE_IGNORED ? 0 : FLP_IGNORE_INDEX,
                                    .temperature = c->temperature,
                                    .row_temperature = at[FLP_CASE_ROW_TEMPERATURE],
                                    .logp = at[FLP_CASE_LOGP],
                                    .lse = at[FLP_CASE_LSE],
                                    .entropy = at[FLP_CASE_ENTROPY],
                                    .argmax = at[FLP_CASE_ARGMAX] };
}
