/* The benchmark's check of scale, with host memory in the device's place: what it lets pass and what not. */
#include "scale_check.h"

#include <math.h>
#include <stdlib.h>

#include "cases.h"
#include "cpu/convert.h"
#include "runtime/assertions.h"

enum { ROWS = 130, COLUMNS = 1100, COUNT = ROWS * COLUMNS };

static const float third = 1.0F / 3;
static _Alignas(16) unsigned char x[COUNT * sizeof(float)];
static float values[COUNT];

flp_status flp_gpu_download(const flp_gpu *gpu, void *to, CUdeviceptr from, size_t bytes)
{
    (void)gpu;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return FLP_OK;
}

static flp_gpu_matrix matrix_of(flp_dtype dtype)
{
    return (flp_gpu_matrix){ (CUdeviceptr)(uintptr_t)x, dtype, ROWS, COLUMNS, COLUMNS, 1 };
}

/* Fills x and returns the rows that will be checked, which the caller frees. */
static void *fill(flp_dtype dtype)
{
    const flp_gpu_matrix matrix = matrix_of(dtype);
    void *rows;

    for (int64_t i = 0; i < COUNT; i++)
        values[i] = (float)flp_case_random_normal(1, (uint64_t)i);
    flp_convert_from_f32(dtype, values, x, COUNT);
    assert_succeeds(flp_scale_check_fetch(NULL, &matrix, &rows));
    return rows;
}

static void scale(flp_dtype dtype, float factor)
{
    flp_convert_to_f32(dtype, x, values, COUNT);
    for (int64_t i = 0; i < COUNT; i++)
        values[i] *= factor;
    flp_convert_from_f32(dtype, values, x, COUNT);
}

static void products_rounded_once_pass(void **state)
{
    static const double rounding[] = { [FLP_BF16] = 0x1p-9, [FLP_F16] = 0x1p-12, [FLP_F32] = 0x1p-25 };

    (void)state;
    for (flp_dtype dtype = FLP_BF16; dtype <= FLP_F32; dtype++) {
        const flp_gpu_matrix matrix = matrix_of(dtype);
        void *rows = fill(dtype);
        double error = NAN;
        scale(dtype, third);
        assert_succeeds(flp_scale_check(NULL, &matrix, rows, third, &error));
        assert_true(error > rounding[dtype] / 4 && error < rounding[dtype]);
        free(rows);
    }
}

static void a_last_bit_that_differs_is_refused(void **state)
{
    const flp_gpu_matrix matrix = matrix_of(FLP_BF16);
    void *rows = fill(FLP_BF16);
    double error;

    (void)state;
    scale(FLP_BF16, third);
    x[sizeof(uint16_t) * (COUNT - 1)] ^= 1;
    assert_fails(FLP_INTERNAL, flp_scale_check(NULL, &matrix, rows, third, &error), "x: row 129, column 1099");
    free(rows);
}

static void a_factor_of_1_leaves_x_alone(void **state)
{
    const flp_gpu_matrix matrix = matrix_of(FLP_BF16);
    void *rows = fill(FLP_BF16);
    double error = NAN;

    (void)state;
    assert_succeeds(flp_scale_check(NULL, &matrix, rows, 1, &error));
    assert_true(error == 0);
    scale(FLP_BF16, -1);
    assert_fails(FLP_INTERNAL, flp_scale_check(NULL, &matrix, rows, 1, &error), "x: row 0, column 0");
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_rounded_once_pass),
        cmocka_unit_test(a_last_bit_that_differs_is_refused),
        cmocka_unit_test(a_factor_of_1_leaves_x_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
