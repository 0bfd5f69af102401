/* Fills a weighted_sum case's buffers: inputs, guards, gaps of NaN, poisoned outputs. */
#include "cases.h"
#include "weighted_sum_cases.h"
#include "base/dtype.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, INPUT_FILL = 0xff, OUTPUT_FILL = 0xc5 };
enum { X_STREAM = 71, W_STREAM, G_STREAM, OLD_STREAM };

static int allocate(flp_weighted_buffer *buffer, int64_t data_bytes, int misalignment, int fill)
{
    buffer->offset = GUARD_BYTES + (size_t)misalignment;
    buffer->data_bytes = (size_t)data_bytes;
    buffer->bytes = (buffer->offset + buffer->data_bytes + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    buffer->base = aligned_alloc(GUARD_BYTES, buffer->bytes);
    if (buffer->base != NULL)
        memset(buffer->base, fill, buffer->bytes);
    return buffer->base != NULL;
}

/* Strided rows end with the last one's last element: nothing behind it is there to be read. */
static int64_t strided_bytes(int64_t rows, int64_t stride, int64_t columns, flp_dtype dtype)
{
    return rows == 0 ? 0 : ((rows - 1) * stride + columns) * flp_dtype_bytes(dtype);
}

/* w is aligned to vectors in every other case, and else to its elements. */
static int w_offset(const flp_weighted_case *c)
{
    const flp_weighted_sum_problem *f = &c->problem.forward;

    return (f->rows + f->columns + c->misalignment / 2) % 2 ? (int)flp_dtype_bytes(f->w_dtype) : 0;
}

static int allocate_all(const flp_weighted_case *c, flp_weighted_buffer *b)
{
    const flp_weighted_sum_backward_problem *p = &c->problem;
    const flp_weighted_sum_problem *f = &p->forward;
    int64_t x_bytes = strided_bytes(f->rows, f->x_stride, f->columns, f->dtype);
    int complete = allocate(&b[FLP_WEIGHTED_X], x_bytes, c->misalignment, INPUT_FILL) &&
                   allocate(&b[FLP_WEIGHTED_W], f->columns * flp_dtype_bytes(f->w_dtype), w_offset(c), INPUT_FILL) &&
                   allocate(&b[FLP_WEIGHTED_G], f->rows * flp_dtype_bytes(f->y_dtype), 0, INPUT_FILL) &&
                   allocate(&b[FLP_WEIGHTED_Y], f->rows * flp_dtype_bytes(f->y_dtype), 0, OUTPUT_FILL);
    if (p->grad_x != FLP_NONE && !(c->content & FLP_WEIGHTED_IN_PLACE))
        complete = complete && allocate(&b[FLP_WEIGHTED_GRAD_X], strided_bytes(f->rows, p->grad_x_stride, f->columns, p->grad_x), c->misalignment, OUTPUT_FILL);
    if (p->grad_w != FLP_NONE)
        complete = complete && allocate(&b[FLP_WEIGHTED_GRAD_W], f->columns * flp_dtype_bytes(p->grad_w), 0, OUTPUT_FILL);
    return complete;
}

static void *data_of(flp_weighted_data *data, flp_weighted_role role)
{
    return data->buffer[role].base + data->buffer[role].offset;
}

static double gradient_value(const flp_weighted_case *c, int64_t row)
{
    double value = flp_case_random_normal(G_STREAM, (uint64_t)row);
    if (!(c->content & FLP_WEIGHTED_UNEVEN))
        return value;
    return row % 3 == 1 ? 0 : row % 50 == 2 ? 1000 * value : value;
}

static void fill_x(const flp_weighted_case *c, void *x)
{
    const flp_weighted_sum_problem *f = &c->problem.forward;
    for (int64_t i = 0; i < f->rows; i++) {
        for (int64_t d = 0; d < f->columns; d++)
            flp_reference_encode(f->dtype, flp_case_random_normal(X_STREAM, (uint64_t)(i * f->columns + d)), x, i * f->x_stride + d);
        int64_t place = i * 7 % f->columns;
        if ((c->content & FLP_WEIGHTED_NAN_ROWS) && i % 5 == 2)
            flp_reference_encode(f->dtype, NAN, x, i * f->x_stride + place);
        if ((c->content & FLP_WEIGHTED_NAN_ROWS) && i % 5 == 4)
            flp_reference_encode(f->dtype, INFINITY, x, i * f->x_stride + place);
    }
}

static int keep_copies(flp_weighted_data *data)
{
    for (int role = 0; role < FLP_WEIGHTED_ROLES; role++) {
        const flp_weighted_buffer *buffer = &data->buffer[role];
        if (buffer->base == NULL)
            continue;
        data->before[role] = malloc(buffer->bytes);
        if (data->before[role] == NULL)
            return 0;
        memcpy(data->before[role], buffer->base, buffer->bytes);
    }
    return 1;
}

int flp_weighted_case_make(const flp_weighted_case *c, flp_weighted_data *data)
{
    const flp_weighted_sum_backward_problem *p = &c->problem;
    const flp_weighted_sum_problem *f = &p->forward;
    *data = (flp_weighted_data){ 0 };
    if (!allocate_all(c, data->buffer)) {
        flp_weighted_case_free(data);
        return 0;
    }
    fill_x(c, data_of(data, FLP_WEIGHTED_X));
    for (int64_t d = 0; d < f->columns; d++)
        flp_reference_encode(f->w_dtype, flp_case_random_normal(W_STREAM, (uint64_t)d), data_of(data, FLP_WEIGHTED_W), d);
    for (int64_t i = 0; i < f->rows; i++)
        flp_reference_encode(f->y_dtype, gradient_value(c, i), data_of(data, FLP_WEIGHTED_G), i);
    if (p->accumulate)
        for (int64_t d = 0; d < f->columns; d++)
            flp_reference_encode(p->grad_w, 3 * flp_case_random_normal(OLD_STREAM, (uint64_t)d), data_of(data, FLP_WEIGHTED_GRAD_W), d);
    if (keep_copies(data))
        return 1;
    flp_weighted_case_free(data);
    return 0;
}

void flp_weighted_case_free(flp_weighted_data *data)
{
    for (int role = 0; role < FLP_WEIGHTED_ROLES; role++) {
        free(data->buffer[role].base);
        free(data->before[role]);
    }
    *data = (flp_weighted_data){ 0 };
}

void flp_weighted_case_restore(flp_weighted_data *data)
{
    for (int role = 0; role < FLP_WEIGHTED_ROLES; role++)
        if (data->buffer[role].base != NULL)
            memcpy(data->buffer[role].base, data->before[role], data->buffer[role].bytes);
}

static void *address(const flp_weighted_data *data, void *const *bases, flp_weighted_role role)
{
    const flp_weighted_buffer *buffer = &data->buffer[role];
    if (buffer->base == NULL)
        return NULL;
    return (unsigned char *)(bases != NULL ? bases[role] : buffer->base) + buffer->offset;
}

void flp_weighted_case_forward(const flp_weighted_case *c, const flp_weighted_data *data, void *const *bases, flp_weighted_sum_args *args)
{
    *args = (flp_weighted_sum_args){ .rows = c->problem.forward.rows,
                                     .x = address(data, bases, FLP_WEIGHTED_X),
                                     .w = address(data, bases, FLP_WEIGHTED_W),
                                     .y = address(data, bases, FLP_WEIGHTED_Y) };
}

/* What is not read may be absent. */
void flp_weighted_case_backward(const flp_weighted_case *c, const flp_weighted_data *data, void *const *bases, flp_weighted_sum_backward_args *args)
{
    const flp_weighted_sum_backward_problem *p = &c->problem;
    const int in_place = (c->content & FLP_WEIGHTED_IN_PLACE) != 0;
    *args = (flp_weighted_sum_backward_args){ .rows = p->forward.rows,
                                              .g = address(data, bases, FLP_WEIGHTED_G),
                                              .grad_x = address(data, bases, in_place ? FLP_WEIGHTED_X : FLP_WEIGHTED_GRAD_X),
                                              .grad_w = address(data, bases, FLP_WEIGHTED_GRAD_W) };
    if (p->grad_w != FLP_NONE)
        args->x = address(data, bases, FLP_WEIGHTED_X);
    if (p->grad_x != FLP_NONE)
        args->w = address(data, bases, FLP_WEIGHTED_W);
}
