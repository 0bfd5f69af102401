/* Online statistics and the vector functions under them. */
#include "cpu/row_statistics.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static double ulps(float got, double want)
{
    int exponent;
    frexp(want, &exponent);
    return fabs(got - want) / ldexp(1, exponent - FLT_MANT_DIG);
}

/* The figures are those that vector_math.h states. */
static void exp2_is_accurate(void **state)
{
    (void)state;
    for (float x = -126; x < 2; x += 1.3e-4f)
        assert_true(ulps(flp_float4_exp2(flp_float4_splat(x))[1], exp2(x)) <= 1.25);
    for (int n = -126; n <= 127; n++)
        assert_true(flp_float4_exp2(flp_float4_splat((float)n))[0] == ldexpf(1, n));
}

static void exp2_takes_what_is_not_finite(void **state)
{
    (void)state;
    flp_float4 y = flp_float4_exp2((flp_float4){ -INFINITY, NAN, -126.5f, -FLT_MAX });
    assert_true(y[0] == 0 && isnan(y[1]) && y[2] == 0 && y[3] == 0);
}

static void tanh_is_accurate_and_odd(void **state)
{
    (void)state;
    for (float x = 1e-30f; x < 20; x *= 1.0003f) {
        flp_float4 y = flp_float4_tanh((flp_float4){ x, -x, x, x });
        assert_true(ulps(y[0], tanh(x)) <= 2);
        assert_true(y[1] == -y[0]);
    }
    flp_float4 y = flp_float4_tanh((flp_float4){ INFINITY, -INFINITY, NAN, 0 });
    assert_true(y[0] == 1 && y[1] == -1 && isnan(y[2]) && y[3] == 0);
}

enum { COUNT = 100 };

typedef struct {
    _Alignas(64) float logits[COUNT * FLP_LANES];
    float bias[COUNT];
    flp_row_transform transform;
    flp_row_statistics statistics;
} fixture;

static void set_up(fixture *f, float (*logit)(int v, int lane))
{
    memset(f->bias, 0, sizeof f->bias);
    f->transform.softcap = 0;
    f->transform.wants_moment = 0;
    for (int lane = 0; lane < FLP_LANES; lane++)
        f->transform.scale.lane[lane] = 1.44269504f;
    for (int v = 0; v < COUNT; v++)
        for (int lane = 0; lane < FLP_LANES; lane++)
            f->logits[v * FLP_LANES + lane] = logit(v, lane);
    flp_row_statistics_clear(&f->statistics);
}

static flp_row_targets *copy_of(const flp_row_targets *targets, flp_row_targets *copy)
{
    if (targets == NULL)
        return NULL;
    *copy = *targets;
    return copy;
}

/* And the same by the narrow vectors beside it. */
static void add(flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias, float *logits, int count, int32_t first,
                flp_row_targets *targets)
{
    static _Alignas(64) float narrow_logits[COUNT * FLP_LANES];
    flp_row_statistics narrow = *statistics;
    flp_row_targets narrow_targets;
    memcpy(narrow_logits, logits, (size_t)count * FLP_LANES * sizeof *logits);
    flp_row_statistics_add_by(4, &narrow, transform, bias, narrow_logits, count, first, copy_of(targets, &narrow_targets));
    flp_row_statistics_add(statistics, transform, bias, logits, count, first, targets);
    assert_memory_equal(logits, narrow_logits, (size_t)count * FLP_LANES * sizeof *logits);
    assert_memory_equal(statistics, &narrow, sizeof narrow);
    if (targets != NULL)
        assert_memory_equal(targets->z, narrow_targets.z, sizeof targets->z);
}

static double lse(const flp_row_statistics *s, int lane)
{
    return s->origin.lane[lane] + log(s->sum[lane]);
}

static double entropy(const flp_row_statistics *s, int lane)
{
    return (log2(s->sum[lane]) - s->moment[lane] / s->sum[lane]) * 0.693147180559945309417;
}

static float slope(int v, int lane)
{
    return (float)(v * (lane - 8)) * 0.1f;
}

static void chunks_of_any_size_add_up(void **state)
{
    (void)state;
    for (int cut = 1; cut < COUNT; cut += 7) {
        static fixture f;
        set_up(&f, slope);
        add(&f.statistics, &f.transform, f.bias, f.logits, cut, 0, NULL);
        add(&f.statistics, &f.transform, f.bias, f.logits + cut * FLP_LANES, COUNT - cut, cut, NULL);
        for (int lane = 0; lane < FLP_LANES; lane++) {
            double sum = 0;
            for (int v = 0; v < COUNT; v++)
                sum += exp((double)slope(v, lane));
            /* The terms that count lie near the origin, 71 at most; log_2(e) in fp32 is off by 1.3e-8, and slope by 2^-24 of itself. */
            assert_true(fabs(lse(&f.statistics, lane) - log(sum)) < 1e-6);
            assert_int_equal(f.statistics.largest_index.lane[lane], lane <= 8 ? 0 : COUNT - 1);
            assert_true(f.statistics.origin.lane[lane] == fmaxf(slope(0, lane), slope(COUNT - 1, lane)));
        }
    }
}

/* The first entries' origin lies up to 100 above or below the last ones'. */
static void the_moment_of_chunks_gives_the_entropy(void **state)
{
    (void)state;
    for (int cut = 1; cut < COUNT; cut += 7) {
        static fixture f;
        set_up(&f, slope);
        f.transform.wants_moment = 1;
        add(&f.statistics, &f.transform, f.bias, f.logits, cut, 0, NULL);
        add(&f.statistics, &f.transform, f.bias, f.logits + cut * FLP_LANES, COUNT - cut, cut, NULL);
        for (int lane = 0; lane < FLP_LANES; lane++) {
            double sum = 0, weighted = 0;
            for (int v = 0; v < COUNT; v++)
                sum += exp((double)slope(v, lane));
            for (int v = 0; v < COUNT; v++)
                weighted += exp((double)slope(v, lane)) / sum * slope(v, lane);
            assert_true(fabs(entropy(&f.statistics, lane) - (log(sum) - weighted)) < 8e-6);
        }
    }
}

static float masked(int v, int lane)
{
    return lane == 0 || v < 50 ? -INFINITY : (float)lane;
}

static void masked_entries_add_nothing(void **state)
{
    (void)state;
    static fixture f;
    set_up(&f, masked);
    add(&f.statistics, &f.transform, f.bias, f.logits, 50, 0, NULL);
    for (int lane = 0; lane < FLP_LANES; lane++)
        assert_true(f.statistics.sum[lane] == 0 && f.statistics.origin.lane[lane] == -INFINITY);
    add(&f.statistics, &f.transform, f.bias, f.logits + 50 * FLP_LANES, 50, 50, NULL);
    assert_true(lse(&f.statistics, 0) == -INFINITY);
    assert_int_equal(f.statistics.largest_index.lane[0], 0);
    for (int lane = 1; lane < FLP_LANES; lane++) {
        assert_true(fabs(lse(&f.statistics, lane) - (lane + log(50))) < 1e-5);
        assert_int_equal(f.statistics.largest_index.lane[lane], 50);
    }
}

static void masked_entries_do_not_show_in_the_entropy(void **state)
{
    (void)state;
    static fixture f;
    set_up(&f, masked);
    f.transform.wants_moment = 1;
    add(&f.statistics, &f.transform, f.bias, f.logits, 70, 0, NULL);
    add(&f.statistics, &f.transform, f.bias, f.logits + 70 * FLP_LANES, 30, 70, NULL);
    assert_true(isnan(entropy(&f.statistics, 0)));
    for (int lane = 1; lane < FLP_LANES; lane++)
        assert_true(fabs(entropy(&f.statistics, lane) - log(50)) < 1e-6);
}

static float one_bad_lane(int v, int lane)
{
    return v == 40 && lane == 3 ? NAN : v == 40 && lane == 4 ? INFINITY : (float)v;
}

static void what_is_not_finite_stays_in_its_lane(void **state)
{
    (void)state;
    static fixture f;
    set_up(&f, one_bad_lane);
    add(&f.statistics, &f.transform, f.bias, f.logits, 60, 0, NULL);
    add(&f.statistics, &f.transform, f.bias, f.logits + 60 * FLP_LANES, 40, 60, NULL);
    for (int lane = 0; lane < FLP_LANES; lane++)
        assert_int_equal(!!isnan(lse(&f.statistics, lane)), lane == 3 || lane == 4);
    assert_int_equal(f.statistics.largest_index.lane[3], 99);
}

static void merging_with_nothing_changes_nothing(void **state)
{
    (void)state;
    static fixture f;
    flp_row_statistics nothing, merged;
    set_up(&f, slope);
    flp_row_statistics_clear(&nothing);
    add(&f.statistics, &f.transform, f.bias, f.logits, COUNT, 0, NULL);
    merged = f.statistics;
    flp_row_statistics_merge(&merged, &nothing, &f.transform);
    assert_memory_equal(&merged, &f.statistics, sizeof merged);
    merged = nothing;
    flp_row_statistics_merge(&merged, &f.statistics, &f.transform);
    assert_memory_equal(&merged, &f.statistics, sizeof merged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp2_is_accurate),
        cmocka_unit_test(exp2_takes_what_is_not_finite),
        cmocka_unit_test(tanh_is_accurate_and_odd),
        cmocka_unit_test(chunks_of_any_size_add_up),
        cmocka_unit_test(the_moment_of_chunks_gives_the_entropy),
        cmocka_unit_test(masked_entries_add_nothing),
        cmocka_unit_test(masked_entries_do_not_show_in_the_entropy),
        cmocka_unit_test(what_is_not_finite_stays_in_its_lane),
        cmocka_unit_test(merging_with_nothing_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
