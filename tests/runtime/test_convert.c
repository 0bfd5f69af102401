/* bf16 and fp16 conversion: every bit pattern, every rounding case, and the dtypes' names. */
#include "cpu/convert.h"
#include "reference.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int same_number(float a, double b)
{
    return isnan(a) ? isnan(b) : (double)a == b && !signbit(a) == !signbit(b);
}

static void every_half_widens_to_its_value(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        assert_true(same_number(flp_convert_bf16_to_f32(half), flp_reference_decode(FLP_BF16, &half, 0)));
        assert_true(same_number(flp_convert_f16_to_f32(half), flp_reference_decode(FLP_F16, &half, 0)));
    }
}

static void every_half_survives_the_way_there_and_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        float b = flp_convert_bf16_to_f32(half), f = flp_convert_f16_to_f32(half);
        if (isnan(b))
            assert_true(isnan(flp_convert_bf16_to_f32(flp_convert_f32_to_bf16(b))));
        else
            assert_int_equal(flp_convert_f32_to_bf16(b), half);
        if (isnan(f))
            assert_true(isnan(flp_convert_f16_to_f32(flp_convert_f32_to_f16(f))));
        else
            assert_int_equal(flp_convert_f32_to_f16(f), half);
    }
}

/* Between each two neighbours: the middle goes to the even one, what is beside the middle to the nearer one. */
static void expect_nearest_even(uint16_t (*narrow)(float), flp_dtype dtype, uint16_t largest)
{
    for (uint16_t low = 0; low < largest; low++) {
        uint16_t high = (uint16_t)(low + 1), even = low % 2 == 0 ? low : high;
        double below = flp_reference_decode(dtype, &low, 0), above = flp_reference_decode(dtype, &high, 0);
        float middle = (float)((below + above) / 2);
        assert_int_equal(narrow(middle), even);
        assert_int_equal(narrow(-middle), even | 0x8000);
        assert_int_equal(narrow(nextafterf(middle, 0)), low);
        assert_int_equal(narrow(nextafterf(middle, INFINITY)), high);
        assert_int_equal(narrow(-nextafterf(middle, 0)), low | 0x8000);
        assert_int_equal(narrow(-nextafterf(middle, INFINITY)), high | 0x8000);
        assert_int_equal(narrow(nextafterf((float)below, INFINITY)), low);
        assert_int_equal(narrow(nextafterf((float)above, 0)), high);
    }
}

static void rounding_is_to_nearest_even(void **state)
{
    (void)state;
    expect_nearest_even(flp_convert_f32_to_bf16, FLP_BF16, 0x7f7f);
    expect_nearest_even(flp_convert_f32_to_f16, FLP_F16, 0x7bff);
}

static void what_is_too_large_becomes_infinite(void **state)
{
    (void)state;
    assert_int_equal(flp_convert_f32_to_f16(65519.99f), 0x7bff);
    assert_int_equal(flp_convert_f32_to_f16(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(flp_convert_f32_to_f16(-nextafterf(65520, 0)), 0xfbff);
    assert_int_equal(flp_convert_f32_to_f16(nextafterf(65520, INFINITY)), 0x7c00);
    assert_int_equal(flp_convert_f32_to_bf16(0x1.fefffep127f), 0x7f7f); /* below the middle of the largest and 2^128 */
    assert_int_equal(flp_convert_f32_to_bf16(0x1.ffp127f), 0x7f80);
    assert_int_equal(flp_convert_f32_to_f16(65520), 0x7c00);
    assert_int_equal(flp_convert_f32_to_f16(-1e30f), 0xfc00);
    assert_int_equal(flp_convert_f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(flp_convert_f32_to_bf16(3.4e38f), 0x7f80);
    assert_int_equal(flp_convert_f32_to_bf16(-INFINITY), 0xff80);
}

/* A NaN whose mantissa lies in the bits that are cut must not become infinite. */
static void nan_stays_nan(void **state)
{
    (void)state;
    uint32_t bits = 0x7f800001;
    float value;
    memcpy(&value, &bits, sizeof value);
    assert_true(isnan(flp_convert_bf16_to_f32(flp_convert_f32_to_bf16(value))));
    assert_true(isnan(flp_convert_f16_to_f32(flp_convert_f32_to_f16(value))));
}

static void arrays_convert_like_single_elements(void **state)
{
    (void)state;
    enum { COUNT = 65536 };
    uint16_t *halves = malloc((COUNT + 1) * sizeof *halves);
    float *wide = malloc(COUNT * sizeof *wide);
    unsigned char *shifted = (unsigned char *)halves + 1; /* not aligned to the elements */
    for (uint32_t i = 0; i < COUNT; i++)
        memcpy(shifted + 2 * i, &(uint16_t){ (uint16_t)i }, 2);
    for (int dtype = FLP_BF16; dtype <= FLP_F16; dtype++) {
        flp_convert_to_f32((flp_dtype)dtype, shifted, wide, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            float one = dtype == FLP_BF16 ? flp_convert_bf16_to_f32((uint16_t)i) : flp_convert_f16_to_f32((uint16_t)i);
            assert_memory_equal(&wide[i], &one, sizeof one);
        }
    }
    free(halves);
    free(wide);
}

static void arrays_narrow_like_single_elements(void **state)
{
    (void)state;
    static const float values[] = { 0, -0.0f, 1, 1.0009766f, 3.1415927f, -65519, 1e-7f, 3.4e38f, -INFINITY };
    enum { COUNT = sizeof values / sizeof *values };
    unsigned char narrow[2 * COUNT + 2];
    memset(narrow, 0xc5, sizeof narrow);
    for (int dtype = FLP_BF16; dtype <= FLP_F16; dtype++) {
        flp_convert_from_f32((flp_dtype)dtype, values, narrow + 1, COUNT); /* not aligned to the elements */
        for (int i = 0; i < COUNT; i++) {
            uint16_t got, want = dtype == FLP_BF16 ? flp_convert_f32_to_bf16(values[i]) : flp_convert_f32_to_f16(values[i]);
            memcpy(&got, narrow + 1 + 2 * i, sizeof got);
            assert_int_equal(got, want);
        }
        assert_true(narrow[0] == 0xc5 && narrow[2 * COUNT + 1] == 0xc5);
    }
    float copy[COUNT];
    flp_convert_from_f32(FLP_F32, values, copy, COUNT);
    assert_memory_equal(values, copy, sizeof copy);
}

static void no_element_behind_the_last_is_written(void **state)
{
    (void)state;
    uint16_t ones[20];
    for (int i = 0; i < 20; i++)
        ones[i] = 0x3f80;
    for (size_t count = 0; count < 20; count++) {
        float wide[21];
        for (int i = 0; i < 21; i++)
            wide[i] = 7;
        flp_convert_to_f32(FLP_BF16, ones, wide, count);
        for (size_t i = 0; i < 21; i++)
            assert_true(wide[i] == (i < count ? 1 : 7));
    }
}

static void fp32_is_copied(void **state)
{
    (void)state;
    float from[3] = { 1.5f, -INFINITY, 3 }, to[3];
    unsigned char shifted[sizeof from + 1];
    memcpy(shifted + 1, from, sizeof from);
    flp_convert_to_f32(FLP_F32, shifted + 1, to, 3);
    assert_memory_equal(from, to, sizeof from);
}

static void names_and_sizes_belong_together(void **state)
{
    (void)state;
    static const struct {
        flp_dtype dtype;
        const char *name;
        int bytes;
    } wanted[] = {
        { FLP_NONE, "none", 0 }, { FLP_BF16, "bf16", 2 }, { FLP_F16, "f16", 2 }, { FLP_F32, "f32", 4 }, { FLP_I32, "i32", 4 }, { FLP_I64, "i64", 8 }
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_string_equal(flp_dtype_name(wanted[i].dtype), wanted[i].name);
        assert_int_equal(flp_dtype_bytes(wanted[i].dtype), wanted[i].bytes);
        assert_int_equal(flp_dtype_parse(wanted[i].name), wanted[i].dtype);
    }
    assert_int_equal(flp_dtype_parse("fp16"), FLP_F16);
    assert_int_equal(flp_dtype_parse("fp32"), FLP_F32);
    assert_int_equal(flp_dtype_parse("bf17"), FLP_NONE);
    assert_int_equal(flp_dtype_parse(""), FLP_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_widens_to_its_value),
        cmocka_unit_test(every_half_survives_the_way_there_and_back),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(what_is_too_large_becomes_infinite),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(arrays_convert_like_single_elements),
        cmocka_unit_test(arrays_narrow_like_single_elements),
        cmocka_unit_test(no_element_behind_the_last_is_written),
        cmocka_unit_test(fp32_is_copied),
        cmocka_unit_test(names_and_sizes_belong_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
