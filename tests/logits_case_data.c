/* Inputs of logits_logp's cases, and the arguments that name them. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "logits_cases.h"
#include "base/dtype.h"

enum { GUARD = 64, INPUT_FILL = 0xff, OUTPUT_FILL = 0xc5 };
enum { LOGIT_STREAM = 501, TARGET_STREAM, TEMPERATURE_STREAM, GRADIENT_STREAM };

static int element_bytes(const flp_logits_case *c)
{
    return flp_dtype_bytes(c->problem.dtype);
}

static int64_t result_rows(const flp_logits_case *c)
{
    return c->rows & FLP_LOGITS_SCATTERED ? c->all_rows : c->problem.rows;
}

/* 0: the case has no such buffer. */
static size_t bytes_of(const flp_logits_case *c, flp_logits_role role)
{
    const size_t all = (size_t)c->all_rows, results = (size_t)result_rows(c), row = (size_t)(c->problem.logits_stride * element_bytes(c));
    const int uneven = (c->rows & FLP_LOGITS_UNEVEN) != 0, all_results = !(c->rows & FLP_LOGITS_LOGP_ONLY);

    switch (role) {
    case FLP_LOGITS_LOGITS:
        return all * row;
    case FLP_LOGITS_TARGET:
        return all * (c->problem.target_dtype == FLP_I32 ? 4 : 8);
    case FLP_LOGITS_ROW_INDEX:
        return c->rows & FLP_LOGITS_INDEXED ? (size_t)c->problem.rows * 8 : 0;
    case FLP_LOGITS_ROW_TEMPERATURE:
        return c->rows & FLP_LOGITS_ROW_TEMPERATURES ? all * 4 : 0;
    case FLP_LOGITS_G_LSE:
        return uneven ? results * 4 : 0;
    case FLP_LOGITS_G_ENTROPY:
        return uneven && c->problem.entropy ? results * 4 : 0;
    case FLP_LOGITS_GIVEN_LOGP:
        return c->rows & FLP_LOGITS_NO_LOGP ? 0 : results * 4;
    case FLP_LOGITS_GIVEN_ENTROPY:
        return c->problem.entropy ? results * 4 : 0;
    case FLP_LOGITS_ENTROPY:
        return all_results && c->problem.entropy ? results * 4 : 0;
    case FLP_LOGITS_ARGMAX:
        return all_results && c->problem.argmax ? results * 4 : 0;
    case FLP_LOGITS_LSE:
        return all_results && !(c->rows & FLP_LOGITS_LSE_UNWANTED) ? results * 4 : 0;
    case FLP_LOGITS_GRAD:
        return results * row;
    case FLP_LOGITS_LOGP:
        return c->rows & FLP_LOGITS_LOGP_UNWANTED ? 0 : results * 4;
    default:
        return results * 4;
    }
}

static int allocate(const flp_logits_case *c, flp_logits_role role, flp_logits_buffer *buffer)
{
    const int displaced = role == FLP_LOGITS_LOGITS || role == FLP_LOGITS_GRAD;
    const size_t bytes = bytes_of(c, role);

    if (bytes == 0 && c->problem.rows > 0)
        return 1;
    *buffer = (flp_logits_buffer){ .offset = GUARD * 4 + (displaced ? (size_t)c->misalignment : 0), .data_bytes = bytes };
    buffer->bytes = (buffer->offset + bytes + GUARD + 255) / 256 * 256;
    buffer->base = aligned_alloc(256, buffer->bytes);
    if (buffer->base)
        memset(buffer->base, role < FLP_LOGITS_LOGP ? INPUT_FILL : OUTPUT_FILL, buffer->bytes);
    return buffer->base != NULL;
}

static void *data_of(const flp_logits_data *data, flp_logits_role role)
{
    return data->buffer[role].base ? data->buffer[role].base + data->buffer[role].offset : NULL;
}

static double largest_number(flp_dtype dtype)
{
    return dtype == FLP_F16 ? 65504 : dtype == FLP_BF16 ? 0x1.fep127 : FLT_MAX;
}

static double logit(const flp_logits_case *c, int64_t row, int64_t v, int64_t target)
{
    static const uint64_t powers_of_3[] = { 1, 3, 9, 27, 81, 243, 729 };
    const int64_t vocab = c->problem.vocab;
    const uint64_t at = (uint64_t)(row * vocab + v);
    const double plain = 2 * flp_case_random_normal(LOGIT_STREAM, at), largest = largest_number(c->problem.dtype);
    const int half = c->problem.dtype == FLP_F16;

    switch (c->values) {
    case FLP_LOGITS_EQUAL:
        return 0;
    /* The largest stands in every entry to one in 729, by the row: the first of them with any other thread, warp and segment than the next. */
    case FLP_LOGITS_TIES:
        return flp_case_random(LOGIT_STREAM, at) % powers_of_3[row % 7] == 0 ? 2 : (double)(flp_case_random(LOGIT_STREAM, at) % 4) - 2;
    case FLP_LOGITS_UP:
        return plain + 1e4;
    case FLP_LOGITS_STEP_40:
        return plain + (v >= vocab - vocab / 3 ? 40 : 0);
    case FLP_LOGITS_STEP_2000:
        return plain + (v >= vocab - vocab / 3 ? 2000 : 0);
    case FLP_LOGITS_FIRST_MASKED:
        return v < vocab / 2 ? -INFINITY : plain;
    case FLP_LOGITS_ONE_LEFT:
        return v < vocab - 1 ? -INFINITY : plain;
    case FLP_LOGITS_ALL_MASKED:
        return -INFINITY;
    case FLP_LOGITS_PLUS_INFINITY:
        return row % 3 == 1 && v == vocab / 3 ? INFINITY : plain;
    case FLP_LOGITS_NAN:
        return row % 3 == 1 && v == vocab / 3 ? NAN : plain;
    case FLP_LOGITS_LIKELY:
        return v == target ? 8 + 4 * (double)row : plain;
    case FLP_LOGITS_TARGET_MASKED:
        return v == target ? -INFINITY : plain;
    case FLP_LOGITS_TARGET_ALONE:
        return v == target ? plain : -INFINITY;
    case FLP_LOGITS_LOWEST:
        return -largest;
    case FLP_LOGITS_LOWEST_FIRST:
        return v < vocab / 2 ? -largest : plain;
    case FLP_LOGITS_HUGE:
        return fmax(-largest, fmin(largest, plain * (half ? 6000 : 1e38)));
    case FLP_LOGITS_FAR_UP:
        return plain + (half ? 0x1p14 : 0x1p24);
    default:
        return plain;
    }
}

static int is_ignored(const flp_logits_case *c, int64_t row)
{
    return c->rows & FLP_LOGITS_IGNORED && row % 3 == 2;
}

static int holds_nan(const flp_logits_case *c, int64_t row)
{
    return is_ignored(c, row) && !(c->rows & FLP_LOGITS_IGNORED_SOUND);
}

/* Outside the vocabulary: just so, far, and beyond 32 bits with low bits that look right. Index 0 .. 3 fit an int32. */
static int64_t target_value(const flp_logits_case *c, int64_t row)
{
    const int64_t minus = c->rows & FLP_LOGITS_NONE_IGNORED ? -100 : -101;
    const int64_t bad[] = { -1, c->problem.vocab, INT_MAX, minus, (1ll << 32) + 3, -(1ll << 32), INT64_MAX, INT64_MIN };

    if (is_ignored(c, row))
        return c->ignore_index;
    if (c->rows & FLP_LOGITS_BAD_TARGETS && row % 3 != 0)
        return bad[row % (c->problem.target_dtype == FLP_I32 ? 4 : 8)];
    if (row < 2)
        return row == 0 ? 0 : c->problem.vocab - 1;
    return (int64_t)(flp_case_random(TARGET_STREAM, (uint64_t)row) % (uint64_t)c->problem.vocab);
}

static void fill_inputs(const flp_logits_case *c, flp_logits_data *data)
{
    static const float temperatures[] = { 1, 0.1f, 7, 0.7f, 1.3f };
    unsigned char *logits = data_of(data, FLP_LOGITS_LOGITS);
    float *temperature = data_of(data, FLP_LOGITS_ROW_TEMPERATURE);

    for (int64_t i = 0; i < c->all_rows; i++) {
        const int64_t target = target_value(c, i);
        for (int64_t v = 0; v < c->problem.vocab; v++)
            flp_reference_encode(c->problem.dtype, holds_nan(c, i) ? NAN : logit(c, i, v, target), logits, i * c->problem.logits_stride + v);
        if (c->problem.target_dtype == FLP_I32)
            ((int32_t *)data_of(data, FLP_LOGITS_TARGET))[i] = (int32_t)target;
        else
            ((int64_t *)data_of(data, FLP_LOGITS_TARGET))[i] = target;
        if (temperature)
            temperature[i] =
                c->rows & FLP_LOGITS_INFINITE_TEMPERATURES && i % 2 == 1 ? INFINITY : temperatures[flp_case_random(TEMPERATURE_STREAM, (uint64_t)i) % 5];
    }
}

/* 5 has no factor in common with 2 rows + 3 unless that is a multiple of 5; then 7. */
static int64_t index_value(const flp_logits_case *c, int64_t i)
{
    const int64_t outside[] = { -1, c->all_rows, INT64_MIN, (1ll << 32) + 1 };

    if (c->rows & FLP_LOGITS_BAD_INDICES && (i % 4 == 1 || c->problem.rows == 1))
        return outside[i / 4 % 4];
    return (i * (c->all_rows % 5 ? 5 : 7) + 2) % c->all_rows;
}

static void fill_gradients(const flp_logits_case *c, flp_logits_data *data)
{
    static const flp_logits_role roles[] = { FLP_LOGITS_G_LOGP, FLP_LOGITS_G_LSE, FLP_LOGITS_G_ENTROPY };

    for (int r = 0; r < 3; r++) {
        float *to = data_of(data, roles[r]);
        for (int64_t i = 0; to && i < result_rows(c); i++)
            to[i] = c->rows & FLP_LOGITS_UNEVEN ? i % 4 == 3 && r == 0 ? 0 : (float)flp_case_random_normal(GRADIENT_STREAM + (uint64_t)r, (uint64_t)i) : 1;
    }
}

int flp_logits_case_make(const flp_logits_case *c, flp_logits_data *data)
{
    int64_t *row_index;

    *data = (flp_logits_data){ 0 };
    for (int role = 0; role < FLP_LOGITS_ROLES; role++)
        if (!allocate(c, (flp_logits_role)role, &data->buffer[role])) {
            flp_logits_case_free(data);
            return 0;
        }
    fill_inputs(c, data);
    fill_gradients(c, data);
    row_index = data_of(data, FLP_LOGITS_ROW_INDEX);
    for (int64_t i = 0; c->rows & FLP_LOGITS_INDEXED && i < c->problem.rows; i++)
        row_index[i] = index_value(c, i);
    return 1;
}

void flp_logits_case_free(flp_logits_data *data)
{
    for (int role = 0; role < FLP_LOGITS_ROLES; role++)
        free(data->buffer[role].base);
    *data = (flp_logits_data){ 0 };
}

void flp_logits_case_poison(flp_logits_data *data)
{
    for (int role = FLP_LOGITS_LOGP; role < FLP_LOGITS_ROLES; role++)
        if (data->buffer[role].base)
            memset(data->buffer[role].base, OUTPUT_FILL, data->buffer[role].bytes);
}

int flp_logits_case_has(const flp_logits_case *c, flp_logits_form form)
{
    return form != FLP_LOGITS_IN_PLACE || !(c->rows & FLP_LOGITS_INDEXED) || c->rows & FLP_LOGITS_SCATTERED;
}

static void *place(const flp_logits_data *data, void *const *bases, flp_logits_role role)
{
    const flp_logits_buffer *buffer = &data->buffer[role];

    if (!buffer->base)
        return NULL;
    return (bases ? (unsigned char *)bases[role] : buffer->base) + buffer->offset;
}

void flp_logits_case_forward(const flp_logits_case *c, const flp_logits_data *data, void *const *bases, flp_logits_logp_args *args)
{
    const int indexed = (c->rows & FLP_LOGITS_INDEXED) != 0;

    *args = (flp_logits_logp_args){ .rows = c->problem.rows,
                                    .logits = place(data, bases, FLP_LOGITS_LOGITS),
                                    .target = place(data, bases, FLP_LOGITS_TARGET),
                                    .row_index = indexed ? place(data, bases, FLP_LOGITS_ROW_INDEX) : NULL,
                                    .logits_rows = indexed ? c->all_rows : 0,
                                    .ignore_index = c->ignore_index,
                                    .temperature = c->temperature,
                                    .row_temperature = place(data, bases, FLP_LOGITS_ROW_TEMPERATURE),
                                    .logp = place(data, bases, FLP_LOGITS_LOGP),
                                    .lse = place(data, bases, FLP_LOGITS_LSE),
                                    .entropy = place(data, bases, FLP_LOGITS_ENTROPY),
                                    .argmax = place(data, bases, FLP_LOGITS_ARGMAX),
                                    .flags = (c->rows & FLP_LOGITS_SCATTERED ? FLP_SCATTER : 0) | (c->rows & FLP_LOGITS_NONE_IGNORED ? 0 : FLP_IGNORE_INDEX) };
    if (!c->problem.entropy)
        args->entropy = NULL; /* "no rows" has every buffer */
    if (!(c->rows & FLP_LOGITS_ROW_TEMPERATURES))
        args->row_temperature = NULL;
}

void flp_logits_case_backward(const flp_logits_case *c, const flp_logits_data *data, void *const *bases, flp_logits_form form,
                              flp_logits_logp_backward_problem *problem, flp_logits_logp_backward_args *args)
{
    const flp_logits_logp_problem *p = &c->problem;
    const int fused = form != FLP_LOGITS_BACKWARD;
    flp_logits_logp_args forward;

    flp_logits_case_forward(c, data, bases, &forward);
    *problem = (flp_logits_logp_backward_problem){ .dtype = p->dtype,
                                                   .rows = p->rows,
                                                   .vocab = p->vocab,
                                                   .logits_stride = p->logits_stride,
                                                   .grad_stride = p->logits_stride,
                                                   .pointer_alignment = p->pointer_alignment,
                                                   .target_dtype = p->target_dtype,
                                                   .softcap = p->softcap,
                                                   .entropy = p->entropy,
                                                   .fused = fused,
                                                   .backend = p->backend };
    *args = (flp_logits_logp_backward_args){ .rows = forward.rows,
                                             .logits = forward.logits,
                                             .target = forward.target,
                                             .row_index = forward.row_index,
                                             .logits_rows = forward.logits_rows,
                                             .ignore_index = forward.ignore_index,
                                             .temperature = forward.temperature,
                                             .row_temperature = forward.row_temperature,
                                             .g_logp = place(data, bases, FLP_LOGITS_G_LOGP),
                                             .g_lse = place(data, bases, FLP_LOGITS_G_LSE),
                                             .g_entropy = p->entropy ? place(data, bases, FLP_LOGITS_G_ENTROPY) : NULL,
                                             .lse = fused ? forward.lse : place(data, bases, FLP_LOGITS_GIVEN_LSE),
                                             .entropy = !p->entropy ? NULL
                                                        : fused     ? forward.entropy
                                                                    : place(data, bases, FLP_LOGITS_GIVEN_ENTROPY),
                                             .logp = fused ? forward.logp : place(data, bases, FLP_LOGITS_GIVEN_LOGP),
                                             .grad_logits = place(data, bases, FLP_LOGITS_GRAD),
                                             .flags = forward.flags };
    if (form == FLP_LOGITS_IN_PLACE)
        args->logits = args->grad_logits;
}
