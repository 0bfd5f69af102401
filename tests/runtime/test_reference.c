/* The fp64 reference against numbers worked out by hand, and the check of the cases against wrong outputs. */
#include "cases.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Hand-computed values: fp64 rounding of a few operations. */
#define assert_close(got, want) assert_true(fabs((got) - (want)) <= 1e-13 * fmax(1, fabs(want)))

/* Two rows, D = 2, V = 3: logits (1, 2, 3) and (-1, 4, 3). */
static const float hidden[2][2] = { { 1, 2 }, { -1, 4 } };
static const float weight[3][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 } };
static int64_t target[2] = { 2, 0 };

static flp_linear_logp_problem small_problem(void)
{
    return (flp_linear_logp_problem){ .dtype = FLP_F32, .rows = 2, .hidden = 2, .vocab = 3, .hidden_stride = 2, .weight_stride = 2, .target_dtype = FLP_I64 };
}

static flp_linear_logp_args small_args(void)
{
    return (flp_linear_logp_args){ .rows = 2, .hidden = hidden, .weight = weight, .target = target, .ignore_index = -100, .flags = FLP_IGNORE_INDEX };
}

static void expect(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, double lse0, double logp0, double lse1, double logp1)
{
    flp_reference r;
    assert_true(flp_reference_compute(problem, args, &r));
    assert_close(r.lse[0], lse0);
    assert_close(r.logp[0], logp0);
    assert_close(r.lse[1], lse1);
    assert_close(r.logp[1], logp1);
    flp_reference_free(&r);
}

static void the_plain_formula(void **state)
{
    (void)state;
    flp_linear_logp_problem p = small_problem();
    flp_linear_logp_args a = small_args();
    double lse0 = log(exp(1) + exp(2) + exp(3)), lse1 = log(exp(-1) + exp(4) + exp(3));
    expect(&p, &a, lse0, 3 - lse0, lse1, -1 - lse1);
    flp_reference r;
    assert_true(flp_reference_compute(&p, &a, &r));
    assert_int_equal(r.argmax[0], 2);
    assert_int_equal(r.argmax[1], 1);
    assert_int_equal(r.bad_count, 0);
    assert_int_equal(r.bad_first, -1);
    flp_reference_free(&r);
}

/* One row of two equal logits and a masked one, one of two logits 4 apart. */
static void the_entropy_is_that_of_the_probabilities(void **state)
{
    (void)state;
    static const float bias[3] = { 1, 0, -INFINITY };
    flp_linear_logp_problem p = small_problem();
    flp_linear_logp_args a = small_args();
    flp_reference r;
    p.bias_dtype = FLP_F32;
    a.bias = bias;
    assert_true(flp_reference_compute(&p, &a, &r));
    assert_close(r.entropy[0], log(2));
    double odds = exp(-4), q = odds / (1 + odds); /* logits 0 and 4 */
    assert_close(r.entropy[1], -q * log(q) - (1 - q) * log(1 - q));
    flp_reference_free(&r);
}

static void columns_give_what_rows_give(void **state)
{
    (void)state;
    static const float columns[2][5] = { { 1, 0, 1, NAN, NAN }, { 0, 1, 1, NAN, NAN } };
    flp_linear_logp_problem p = small_problem();
    flp_linear_logp_args a = small_args();
    p.weight_layout = FLP_HIDDEN_VOCAB;
    p.weight_stride = 5;
    a.weight = columns;
    double lse0 = log(exp(1) + exp(2) + exp(3)), lse1 = log(exp(-1) + exp(4) + exp(3));
    expect(&p, &a, lse0, 3 - lse0, lse1, -1 - lse1);
}

static void bias_then_softcap_then_temperature(void **state)
{
    (void)state;
    static const uint16_t bias[3] = { 0x3f80, 0xc000, 0x0000 }; /* bf16: 1, -2, 0 */
    static const float temperatures[2] = { 0.5f, 2 };
    flp_linear_logp_problem p = small_problem();
    flp_linear_logp_args a = small_args();
    p.bias_dtype = FLP_BF16;
    p.softcap = 3;
    a.bias = bias;
    a.row_temperature = temperatures;
    a.temperature = 99; /* row_temperature is used instead */
    double z0[3] = { 6 * tanh(2 / 3.0), 0, 6 * tanh(1) }, z1[3] = { 0, 1.5 * tanh(2 / 3.0), 1.5 * tanh(1) };
    double lse0 = log(exp(z0[0]) + exp(z0[1]) + exp(z0[2])), lse1 = log(exp(z1[0]) + exp(z1[1]) + exp(z1[2]));
    expect(&p, &a, lse0, z0[2] - lse0, lse1, z1[0] - lse1);
}

static void ignored_and_bad_targets(void **state)
{
    (void)state;
    int64_t targets[2] = { 7, 3 };
    flp_linear_logp_problem p = small_problem();
    flp_linear_logp_args a = small_args();
    a.target = targets;
    a.ignore_index = 7;
    flp_reference r;
    assert_true(flp_reference_compute(&p, &a, &r));
    assert_true(r.logp[0] == 0 && isnan(r.logp[1]) && isfinite(r.lse[1]));
    assert_int_equal(r.bad_count, 1);
    assert_int_equal(r.bad_first, 1);
    flp_reference_free(&r);
}

static void infinite_logits(void **state)
{
    (void)state;
    float bias[3] = { -INFINITY, -INFINITY, -INFINITY };
    flp_linear_logp_problem p = small_problem();
    flp_linear_logp_args a = small_args();
    p.bias_dtype = FLP_F32;
    a.bias = bias;
    flp_reference r;
    assert_true(flp_reference_compute(&p, &a, &r));
    assert_true(r.lse[0] == -INFINITY && isnan(r.logp[0]) && r.argmax[0] == 0);
    flp_reference_free(&r);
    bias[1] = 0;
    assert_true(flp_reference_compute(&p, &a, &r));
    assert_true(r.lse[0] == 2 && r.logp[0] == -INFINITY && r.argmax[0] == 1);
    flp_reference_free(&r);
    bias[2] = INFINITY;
    assert_true(flp_reference_compute(&p, &a, &r));
    assert_true(isnan(r.lse[0]) && isnan(r.logp[0]) && r.argmax[0] == -1);
    flp_reference_free(&r);
}

static void encoding_keeps_what_the_dtype_holds(void **state)
{
    (void)state;
    static const double values[] = { 0, -0.0, 1, -1.5, 0x1p-14, 0x1p-24, 0x1.8p-20, 49920, INFINITY, -INFINITY };
    for (int dtype = FLP_BF16; dtype <= FLP_F32; dtype++) {
        float room;
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            flp_reference_encode((flp_dtype)dtype, values[i], &room, 0);
            double got = flp_reference_decode((flp_dtype)dtype, &room, 0);
            assert_true(got == values[i] && !signbit(got) == !signbit(values[i]));
        }
        flp_reference_encode((flp_dtype)dtype, NAN, &room, 0);
        assert_true(isnan(flp_reference_decode((flp_dtype)dtype, &room, 0)));
    }
}

static void comparing_measures_the_error(void **state)
{
    (void)state;
    const float got[4] = { 3, 4.5f, NAN, -INFINITY };
    const double want[4] = { 3, 4, NAN, -INFINITY }, other[4] = { 3, 4, NAN, INFINITY };
    flp_reference_error e;
    flp_reference_compare(got, want, 4, &e);
    assert_close(e.norm, 0.5);
    assert_close(e.relative, 0.1);
    assert_close(e.largest, 0.5);
    assert_int_equal(e.largest_at, 1);
    assert_int_equal(e.unlike_at, -1);
    flp_reference_compare(got, other, 4, &e);
    assert_int_equal(e.unlike_at, 3);
}

/* ---- the check has to see what is wrong ---- */

typedef struct {
    flp_case c;
    flp_case_data data;
    flp_linear_logp_args args;
    flp_reference reference;
    char message[256];
} judged;

/* A case with outputs that are right. */
static void make_right(judged *j, const char *name)
{
    int i = 0;
    do
        flp_case_get(i, &j->c);
    while (strcmp(j->c.name, name) != 0 && ++i < flp_case_count());
    assert_string_equal(j->c.name, name);
    assert_true(flp_case_make_data(&j->c, &j->data));
    flp_case_args(&j->c, &j->data, NULL, &j->args);
    assert_true(flp_reference_compute(&j->c.problem, &j->args, &j->reference));
    for (int64_t row = 0; row < j->args.rows; row++) {
        j->args.logp[row] = (float)j->reference.logp[row];
        j->args.lse[row] = (float)j->reference.lse[row];
        if (j->args.entropy != NULL)
            j->args.entropy[row] = (float)j->reference.entropy[row];
        if (j->args.argmax != NULL)
            j->args.argmax[row] = (int32_t)(j->reference.argmax[row] < 0 ? 0 : j->reference.argmax[row]);
    }
}

static int is_right(judged *j)
{
    return flp_case_check(&j->c, &j->data, &j->reference, j->message, sizeof j->message);
}

static void drop(judged *j)
{
    flp_reference_free(&j->reference);
    flp_case_free_data(&j->data);
}

static void right_outputs_pass(void **state)
{
    (void)state;
    static const char *const names[] = { "ties", "NaN and inf rows", "all masked", "ignored rows hold NaN", "temperature 7" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        judged j;
        make_right(&j, names[i]);
        if (!is_right(&j))
            fail_msg("%s: %s", names[i], j.message);
        drop(&j);
    }
}

static void wrong_outputs_are_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "ties");
    float logp = j.args.logp[5];
    j.args.logp[5] = logp * (1 + 1e-4f);
    assert_false(is_right(&j));
    j.args.logp[5] = NAN;
    assert_false(is_right(&j));
    j.args.logp[5] = logp;
    j.args.lse[64] += 1e-3f;
    assert_false(is_right(&j));
    j.args.lse[64] = (float)j.reference.lse[64];
    assert_true(is_right(&j));

    int32_t argmax = j.args.argmax[3];
    j.args.argmax[3] = argmax + 1;
    assert_false(is_right(&j));
    j.args.argmax[3] = 1000;
    assert_false(is_right(&j));
    j.args.argmax[3] = argmax;
    j.args.argmax[-1] = 0;
    assert_false(is_right(&j));
    drop(&j);
}

static void a_wrong_entropy_is_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "temperature 7");
    float entropy = j.args.entropy[9];
    j.args.entropy[9] = entropy * (1 + 1e-4f);
    assert_false(is_right(&j));
    assert_non_null(strstr(j.message, "entropy"));
    j.args.entropy[9] = -1e-9f;
    assert_false(is_right(&j));
    j.args.entropy[9] = entropy;
    assert_true(is_right(&j));
    drop(&j);
}

static void a_write_behind_an_output_is_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "temperature 7");
    j.args.logp[j.args.rows] = 0;
    assert_false(is_right(&j));
    assert_non_null(strstr(j.message, "logp"));
    drop(&j);
}

static void an_untouched_output_is_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "all ignored");
    flp_case_poison_outputs(&j.data);
    assert_false(is_right(&j));
    drop(&j);
}

static void names_of_cases_are_unique(void **state)
{
    (void)state;
    for (int i = 0; i < flp_case_count(); i++) {
        flp_case a, b;
        flp_case_get(i, &a);
        for (int k = 0; k < i; k++) {
            flp_case_get(k, &b);
            assert_string_not_equal(a.name, b.name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plain_formula),
        cmocka_unit_test(the_entropy_is_that_of_the_probabilities),
        cmocka_unit_test(columns_give_what_rows_give),
        cmocka_unit_test(bias_then_softcap_then_temperature),
        cmocka_unit_test(ignored_and_bad_targets),
        cmocka_unit_test(infinite_logits),
        cmocka_unit_test(encoding_keeps_what_the_dtype_holds),
        cmocka_unit_test(comparing_measures_the_error),
        cmocka_unit_test(right_outputs_pass),
        cmocka_unit_test(wrong_outputs_are_seen),
        cmocka_unit_test(a_wrong_entropy_is_seen),
        cmocka_unit_test(a_write_behind_an_output_is_seen),
        cmocka_unit_test(an_untouched_output_is_seen),
        cmocka_unit_test(names_of_cases_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
