/* The cases of scale: addresses and strides on and off the vectors, factors of all kinds, and values that are special to a dtype. */
#include "scale_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "cases.h"

enum { GUARD_BYTES = 256, FILL = 0xff, X_STREAM = 81, SPECIAL_EVERY = 13 };

/* misaligned: elements from a 256-byte boundary to x. */
typedef struct {
    int64_t rows, columns, stride;
    int misaligned;
} shape;

/* From 16385 (fp32: 8193) columns on, a row has several parts. */
static const shape shapes[] = { { 1, 1, 1, 0 },         { 3, 5, 5, 1 },         { 5, 33, 36, 3 },    { 2, 8, 8, 0 },   { 7, 64, 72, 2 },
                                { 1, 32775, 32775, 5 }, { 3, 16391, 16400, 1 }, { 40, 512, 512, 0 }, { 300, 7, 9, 1 }, { 129, 1030, 1030, 0 } };
static const float factors[] = { -0.3333f, 1.0f, 0.0f, 65537.0f, 1e-36f, INFINITY, NAN, 0x1.000002p0f };
static const flp_dtype dtypes[] = { FLP_BF16, FLP_F16, FLP_F32 };
enum { SHAPES = sizeof(shapes) / sizeof(*shapes), FACTORS = sizeof(factors) / sizeof(*factors), DTYPES = sizeof(dtypes) / sizeof(*dtypes) };

int flp_scale_case_count(void)
{
    return SHAPES * FACTORS * DTYPES;
}

void flp_scale_case_get(int index, flp_scale_case *out)
{
    const int among = index % (FACTORS * DTYPES);
    const shape *s = &shapes[(index / (FACTORS * DTYPES) + among) % SHAPES]; /* so that the first cases have all shapes */
    const flp_dtype dtype = dtypes[among / FACTORS];

    *out = (flp_scale_case){ .problem = { .dtype = dtype, .rows = s->rows, .columns = s->columns, .x_stride = s->stride },
                             .factor = factors[among % FACTORS],
                             .misalignment = s->misaligned * flp_dtype_bytes(dtype) };
    snprintf(out->name, sizeof(out->name), "%s n%lld d%lld stride %lld, %d bytes off, times %g", flp_dtype_name(dtype), (long long)s->rows,
             (long long)s->columns, (long long)s->stride, out->misalignment, (double)out->factor);
}

/* Infinities, a NaN, zeros, subnormal and largest numbers. */
static void put_special(flp_dtype dtype, int which, unsigned char *to)
{
    static const uint32_t f32[] = { 0x7f800000, 0xff800000, 0x7fc12345, 0x80000000, 0, 1, 0x807fffff, 0x7f7fffff };
    static const uint16_t bf16[] = { 0x7f80, 0xff80, 0x7fc1, 0x8000, 0, 1, 0x807f, 0x7f7f };
    static const uint16_t f16[] = { 0x7c00, 0xfc00, 0x7e01, 0x8000, 0, 1, 0x83ff, 0x7bff };

    if (dtype == FLP_F32)
        memcpy(to, &f32[which], sizeof(*f32));
    else
        memcpy(to, dtype == FLP_BF16 ? &bf16[which] : &f16[which], sizeof(*f16));
}

static int64_t place(const flp_scale_case *c, int64_t row, int64_t column)
{
    return row * c->problem.x_stride + column;
}

int flp_scale_case_make(const flp_scale_case *c, flp_scale_data *data)
{
    const flp_scale_problem *p = &c->problem;
    const int element = flp_dtype_bytes(p->dtype);

    *data = (flp_scale_data){ .offset = GUARD_BYTES + (size_t)c->misalignment,
                              .x_bytes = (size_t)(((p->rows - 1) * p->x_stride + p->columns) * element),
                              .factor = c->factor };
    data->bytes = (data->offset + data->x_bytes + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    data->base = aligned_alloc(GUARD_BYTES, data->bytes);
    data->before = malloc(data->bytes);
    if (!data->base || !data->before) {
        flp_scale_case_free(data);
        return 0;
    }
    memset(data->base, FILL, data->bytes);
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t d = 0; d < p->columns; d++) {
            const uint64_t number = (uint64_t)(i * p->columns + d);
            unsigned char *x = data->base + data->offset;

            if (number % SPECIAL_EVERY == 1)
                put_special(p->dtype, (int)(number / SPECIAL_EVERY % 8), x + place(c, i, d) * element);
            else
                flp_reference_encode(p->dtype, flp_case_random_normal(X_STREAM, number), x, place(c, i, d));
        }
    memcpy(data->before, data->base, data->bytes);
    return 1;
}

void flp_scale_case_free(flp_scale_data *data)
{
    free(data->base);
    free(data->before);
    *data = (flp_scale_data){ 0 };
}

/* The number of the dtype that is nearest to value, of two the even one: a multiple of 2^(its exponent + 1 - digits), or of the smallest subnormal number. */
static double rounded(flp_dtype dtype, double value)
{
    const int digits = dtype == FLP_BF16 ? 8 : 11, least = dtype == FLP_BF16 ? -133 : -24;
    const double most = dtype == FLP_BF16 ? 0x1.fep127 : 65504;
    double result;
    int exponent;

    if (dtype == FLP_F32 || !isfinite(value) || value == 0)
        return value;
    frexp(value, &exponent);
    exponent = exponent - digits > least ? exponent - digits : least;
    result = ldexp(rint(ldexp(value, -exponent)), exponent);
    return fabs(result) > most ? copysign(INFINITY, value) : result;
}

static int is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

int flp_scale_case_check(const flp_scale_case *c, const flp_scale_data *data, char *message, size_t bytes)
{
    const flp_scale_problem *p = &c->problem;
    const int element = flp_dtype_bytes(p->dtype);
    unsigned char *wanted = malloc(data->bytes); /* what base should hold; of x its own products, which are checked before */
    int right = wanted != NULL;

    if (!wanted) {
        snprintf(message, bytes, "no memory");
        return 0;
    }
    memcpy(wanted, data->before, data->bytes);
    for (int64_t i = 0; i < p->rows && right && c->factor != 1; i++)
        for (int64_t d = 0; d < p->columns && right; d++) {
            const int64_t at = place(c, i, d);
            const float x = (float)flp_reference_decode(p->dtype, data->before + data->offset, at);
            const volatile float product = x * c->factor;
            const double want = rounded(p->dtype, product), got = flp_reference_decode(p->dtype, data->base + data->offset, at);

            if (!is_same(want, got)) {
                snprintf(message, bytes, "x[%lld][%lld]: got %.9g, wanted %.9g: %.9g times %.9g", (long long)i, (long long)d, got, want, (double)x,
                         (double)c->factor);
                right = 0;
            }
            memcpy(wanted + data->offset + at * element, data->base + data->offset + at * element, (size_t)element);
        }
    for (size_t i = 0; i < data->bytes && right; i++)
        if (wanted[i] != data->base[i]) {
            snprintf(message, bytes, "byte %lld from x on was changed from %d to %d", (long long)i - (long long)data->offset, wanted[i], data->base[i]);
            right = 0;
        }
    free(wanted);
    return right;
}
