/* The table of cases: sizes around vectors and teams, then dtypes, strides, alignments and contents. */
#include "weighted_sum_cases.h"
#include "base/dtype.h"
#include <inttypes.h>
#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Zeros stand for: w, y and the gradients of x's dtype, dense rows. */
typedef struct {
    flp_dtype dtype, w, y, grad_x, grad_w;
    int64_t rows, columns;
    int gap, grad_gap; /* elements between rows */
    int misalignment;
    int accumulate;
    unsigned content;
    int only; /* 1: grad_x only, 2: grad_w only */
} row;

static const row listed[] = {
    /* the quick ones */
    { .dtype = FLP_BF16, .rows = 37, .columns = 256 },
    { .dtype = FLP_F32, .rows = 70, .columns = 100 },
    { .dtype = FLP_F16, .rows = 33, .columns = 77 },
    { .dtype = FLP_BF16, .rows = 300, .columns = 72, .misalignment = 2 },
    { .dtype = FLP_BF16, .w = FLP_F32, .y = FLP_F32, .rows = 9, .columns = 1030, .grad_w = FLP_F32 },
    { .dtype = FLP_F32, .w = FLP_BF16, .y = FLP_BF16, .rows = 9, .columns = 515, .grad_x = FLP_BF16 },
    { .dtype = FLP_F32, .rows = 3, .columns = 16390, .gap = 2 },
    { .dtype = FLP_BF16, .rows = 1, .columns = 1 },
    { .dtype = FLP_F32, .rows = 130, .columns = 3, .accumulate = 1 },
    { .dtype = FLP_F16, .w = FLP_F32, .rows = 40, .columns = 64, .misalignment = 8, .content = FLP_WEIGHTED_IN_PLACE },
    { .dtype = FLP_BF16, .rows = 600, .columns = 40, .misalignment = 4, .gap = 6 },
    { .dtype = FLP_BF16, .rows = 0, .columns = 100 },
    /* several tiles, added to */
    { .dtype = FLP_BF16, .rows = 3500, .columns = 40, .grad_w = FLP_F32, .accumulate = 1 },
    /* strides, gaps that hold NaN, alignments */
    { .dtype = FLP_BF16, .rows = 65, .columns = 128, .gap = 8, .grad_gap = 16 },
    { .dtype = FLP_BF16, .rows = 65, .columns = 129, .gap = 7, .grad_gap = 15 },
    { .dtype = FLP_F32, .rows = 65, .columns = 129, .gap = 1, .grad_gap = 3 },
    { .dtype = FLP_F32, .rows = 65, .columns = 128, .misalignment = 4 },
    { .dtype = FLP_F32, .rows = 65, .columns = 128, .misalignment = 8 },
    { .dtype = FLP_F16, .rows = 65, .columns = 2048, .misalignment = 2 },
    { .dtype = FLP_BF16, .rows = 31, .columns = 4095 },
    { .dtype = FLP_BF16, .grad_x = FLP_F32, .rows = 31, .columns = 96, .misalignment = 4 },
    /* many columns, also more of w than any L1 cache holds */
    { .dtype = FLP_F32, .rows = 5, .columns = 16384 },
    { .dtype = FLP_F32, .rows = 5, .columns = 40001 },
    { .dtype = FLP_BF16, .rows = 5, .columns = 32768 },
    { .dtype = FLP_BF16, .rows = 5, .columns = 32769 },
    { .dtype = FLP_BF16, .w = FLP_F32, .rows = 7, .columns = 50000 },
    { .dtype = FLP_F32, .w = FLP_F16, .rows = 3, .columns = 70003 },
    /* contents */
    { .dtype = FLP_BF16, .rows = 50, .columns = 300, .content = FLP_WEIGHTED_NAN_ROWS, .only = 1 },
    { .dtype = FLP_F32, .rows = 50, .columns = 40, .content = FLP_WEIGHTED_NAN_ROWS, .only = 1 },
    { .dtype = FLP_F32, .rows = 200, .columns = 64, .content = FLP_WEIGHTED_UNEVEN },
    { .dtype = FLP_BF16, .rows = 2000, .columns = 64, .content = FLP_WEIGHTED_UNEVEN, .y = FLP_F32, .grad_w = FLP_F32, .accumulate = 1 },
    { .dtype = FLP_BF16, .rows = 100, .columns = 4096, .content = FLP_WEIGHTED_IN_PLACE },
    { .dtype = FLP_F32, .rows = 10, .columns = 5, .content = FLP_WEIGHTED_IN_PLACE },
    /* one gradient; none of the rows */
    { .dtype = FLP_BF16, .rows = 66, .columns = 200, .only = 1 },
    { .dtype = FLP_BF16, .rows = 66, .columns = 200, .only = 2, .accumulate = 1 },
    { .dtype = FLP_F32, .rows = 0, .columns = 5000, .only = 2 },
    { .dtype = FLP_BF16, .rows = 0, .columns = 64, .only = 2, .accumulate = 1 },
    { .dtype = FLP_F32, .rows = 0, .columns = 64, .only = 1 },
    /* many rows: more tiles than one, and rows that do not fill them */
    { .dtype = FLP_F32, .rows = 10007, .columns = 12 },
    { .dtype = FLP_BF16, .rows = 10007, .columns = 520 },
    { .dtype = FLP_F16, .rows = 5000, .columns = 1000 },
    { .dtype = FLP_BF16, .rows = 70000, .columns = 8 },
};

static const int64_t grid_rows[] = { 1, 2, 17, 129 };
/* Around vectors of 4 and 8 elements, and around where the teams of 1 to 512 threads begin. */
static const int64_t grid_columns[] = { 2, 4, 7, 8, 9, 16, 17, 31, 32, 33, 63, 65, 127, 255, 257, 511, 513, 1000, 2049, 4097, 8191, 8193 };
static const flp_dtype dtypes[] = { FLP_BF16, FLP_F32, FLP_F16 };

static flp_dtype either(flp_dtype given, flp_dtype otherwise)
{
    return given == FLP_NONE ? otherwise : given;
}

static void fill(const row *r, flp_weighted_case *c)
{
    flp_weighted_sum_backward_problem *p = &c->problem;
    flp_weighted_sum_problem *f = &p->forward;
    *c = (flp_weighted_case){ .content = r->content, .misalignment = r->misalignment };
    *f = (flp_weighted_sum_problem){ .dtype = r->dtype,
                                     .rows = r->rows,
                                     .columns = r->columns,
                                     .x_stride = r->columns + r->gap,
                                     .w_dtype = either(r->w, r->dtype),
                                     .y_dtype = either(r->y, r->dtype) };
    if (r->misalignment)
        f->pointer_alignment = r->misalignment & -r->misalignment;
    if (r->only != 2)
        p->grad_x = either(r->grad_x, r->dtype);
    if (r->only != 1)
        p->grad_w = either(r->grad_w, f->w_dtype);
    if (p->grad_x != FLP_NONE)
        p->grad_x_stride = r->content & FLP_WEIGHTED_IN_PLACE ? f->x_stride : r->columns + r->grad_gap;
    p->accumulate = r->accumulate;
    snprintf(c->name, sizeof(c->name), "%s n%" PRId64 " d%" PRId64 " w %s, y %s, gradients %s %s%s, stride %" PRId64 ", misaligned %d, content %u",
             flp_dtype_name(f->dtype), f->rows, f->columns, flp_dtype_name(f->w_dtype), flp_dtype_name(f->y_dtype), flp_dtype_name(p->grad_x),
             flp_dtype_name(p->grad_w), p->accumulate ? " added" : "", f->x_stride * flp_dtype_bytes(f->dtype), r->misalignment, r->content);
}

int flp_weighted_case_count(void)
{
    return COUNT(listed) + COUNT(grid_rows) * COUNT(grid_columns);
}

void flp_weighted_case_get(int index, flp_weighted_case *out)
{
    if (index < COUNT(listed)) {
        fill(&listed[index], out);
        return;
    }
    index -= COUNT(listed);
    int columns = index / COUNT(grid_rows);
    row r = { .dtype = dtypes[index % COUNT(dtypes)],
              .w = dtypes[index / 2 % COUNT(dtypes)],
              .y = dtypes[index / 5 % COUNT(dtypes)],
              .rows = grid_rows[index % COUNT(grid_rows)],
              .columns = grid_columns[columns] };
    fill(&r, out);
}
