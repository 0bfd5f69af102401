/* From logits to the derivatives by them, against the definition in fp64. */
#include "cpu/convert.h"
#include "operators/linear/logit_gradient.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 40 };

typedef struct {
    _Alignas(64) float logits[COUNT * FLP_LANES];
    float bias[COUNT];
    double temperature;
    flp_logit_gradient gradient;
    flp_logit_gradient_row row[FLP_LANES];
} fixture;

static float logit(int v, int lane)
{
    return (float)((v * 7 + lane * 3) % 17) * 0.5f - 4;
}

static double z_of(const fixture *f, int v, int lane)
{
    double c = f->gradient.transform.softcap, biased = (double)logit(v, lane) + f->bias[v];
    return (c > 0 ? c * tanh(biased / c) : biased) / f->temperature;
}

static void set_up(fixture *f, float softcap, double temperature)
{
    memset(f, 0, sizeof *f);
    f->temperature = temperature;
    f->gradient.transform.softcap = softcap;
    for (int v = 0; v < COUNT; v++)
        f->bias[v] = v % 3 ? 0 : 0.25f;
    for (int lane = 0; lane < FLP_LANES; lane++) {
        double sum = 0, entropy = 0;
        for (int v = 0; v < COUNT; v++)
            sum += exp(z_of(f, v, lane));
        for (int v = 0; v < COUNT; v++)
            entropy -= exp(z_of(f, v, lane)) / sum * (z_of(f, v, lane) - log(sum));
        f->gradient.transform.scale.lane[lane] = (float)(1.44269504088896340736 / temperature);
        f->row[lane] = (flp_logit_gradient_row){ .g_logp = 1,
                                                 .g_lse = 0.5 * (lane - 8),
                                                 .g_entropy = 0.25 * lane,
                                                 .temperature = temperature,
                                                 .shares = flp_row_shares_of_lse(log(sum), entropy, NAN, 1.44269504088896340736 / temperature),
                                                 .target = lane + 3 };
        flp_logit_gradient_set(&f->gradient, lane, &f->row[lane]);
        for (int v = 0; v < COUNT; v++)
            f->logits[v * FLP_LANES + lane] = logit(v, lane);
    }
}

static double wanted(const fixture *f, int v, int lane)
{
    const flp_logit_gradient_row *row = &f->row[lane];
    double c = f->gradient.transform.softcap, log_p = z_of(f, v, lane) - row->shares.lse, p = exp(log_p);
    double t = c > 0 ? tanh(((double)logit(v, lane) + f->bias[v]) / c) : 0;
    double a = row->g_logp * ((v == row->target) - p) + row->g_lse * p - row->g_entropy * p * (log_p + row->shares.entropy);
    return a / row->temperature * (1 - t * t);
}

/* Terms of at most 10, of a few roundings of fp32 each. */
/* In place, and the same by the narrow vectors beside them. */
static void apply(const flp_logit_gradient *gradient, const float *bias, float *logits, int count, int32_t first)
{
    static _Alignas(64) float narrow[COUNT * FLP_LANES], pairs[COUNT * FLP_LANES], narrow_pairs[COUNT * FLP_LANES];
    flp_logit_gradient_apply_by(4, gradient, bias, NULL, logits, count, first, narrow);
    flp_logit_gradient_apply_by(flp_vector_width(), gradient, bias, NULL, logits, count, first, logits);
    assert_memory_equal(logits, narrow, (size_t)count * FLP_LANES * sizeof *logits);
    flp_logit_gradient_pack_by(4, logits, count, 11, narrow_pairs);
    flp_logit_gradient_pack_by(flp_vector_width(), logits, count, 11, pairs);
    assert_memory_equal(pairs, narrow_pairs, (size_t)(count + 1) / 2 * FLP_LANES * sizeof *pairs);
    for (int v = 0; v < count; v++) {
        for (int lane = 0; lane < FLP_LANES; lane++) {
            uint32_t pair;
            memcpy(&pair, &pairs[v / 2 * FLP_LANES + lane], sizeof pair);
            uint16_t half = (uint16_t)(v % 2 ? pair >> 16 : pair);
            assert_int_equal(half, lane < 11 ? flp_convert_f32_to_bf16(logits[v * FLP_LANES + lane]) : 0);
        }
    }
}

static void expect_derivatives(float softcap, double temperature)
{
    static fixture f;
    set_up(&f, softcap, temperature);
    apply(&f.gradient, f.bias, f.logits, 25, 0);
    apply(&f.gradient, f.bias + 25, f.logits + 25 * FLP_LANES, COUNT - 25, 25);
    for (int v = 0; v < COUNT; v++)
        for (int lane = 0; lane < FLP_LANES; lane++)
            assert_true(fabs(f.logits[v * FLP_LANES + lane] - wanted(&f, v, lane)) <= 10 * 8 * 0x1p-24 / temperature);
}

static void the_derivatives_are_those_of_the_definition(void **state)
{
    (void)state;
    expect_derivatives(0, 1);
    expect_derivatives(0, 0.7);
    expect_derivatives(30, 1);
    expect_derivatives(2, 3);
}

/* 1 - tanh^2 cancels where tanh is near 1; the relative error stays that of exp2. */
static void a_capped_logit_keeps_its_small_slope(void **state)
{
    (void)state;
    static fixture f;
    set_up(&f, 1, 1);
    for (int lane = 0; lane < FLP_LANES; lane++)
        f.logits[lane] = (float)(lane - 8);
    f.bias[0] = 0;
    flp_logit_gradient plain = f.gradient;
    for (int lane = 0; lane < FLP_LANES; lane++) {
        flp_logit_gradient_row row = {
            .g_logp = 1, .temperature = 1, .shares = flp_row_shares_of_lse(1e6, 0, NAN, 1.44269504088896340736), .target = 0
        }; /* p = 0 */
        flp_logit_gradient_set(&plain, lane, &row);
    }
    apply(&plain, f.bias, f.logits, 1, 0);
    for (int lane = 0; lane < FLP_LANES; lane++) {
        double slope = 1 / (cosh(lane - 8) * cosh(lane - 8));
        assert_true(fabs(f.logits[lane] - slope) <= 32 * 0x1p-24 * slope);
    }
}

static void a_masked_logit_has_no_derivative_and_nan_stays(void **state)
{
    (void)state;
    static fixture f;
    set_up(&f, 0, 1);
    f.logits[5] = -INFINITY;
    f.logits[6] = NAN;
    f.logits[7] = -1e30f;
    apply(&f.gradient, f.bias, f.logits, 1, 0);
    assert_true(f.logits[5] == 0 && isnan(f.logits[6]) && f.logits[7] == 0);
}

/* All its logits are -inf: so is lse, and no probability is defined. */
static void a_row_of_nothing_is_nan(void **state)
{
    (void)state;
    static fixture f;
    set_up(&f, 0, 1);
    flp_logit_gradient_row row = { .g_logp = 1, .temperature = 1, .shares = flp_row_shares_of_lse(-INFINITY, 0, NAN, 1.44269504088896340736), .target = 1 };
    flp_logit_gradient_set(&f.gradient, 2, &row);
    f.logits[2] = -INFINITY;
    apply(&f.gradient, f.bias, f.logits, 1, 0);
    assert_true(isnan(f.logits[2]) && isfinite(f.logits[3]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_derivatives_are_those_of_the_definition),
        cmocka_unit_test(a_capped_logit_keeps_its_small_slope),
        cmocka_unit_test(a_masked_logit_has_no_derivative_and_nan_stays),
        cmocka_unit_test(a_row_of_nothing_is_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
