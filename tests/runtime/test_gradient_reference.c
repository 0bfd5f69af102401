/* The fp64 gradients against numbers worked out by hand and against finite differences, and the check of the cases against wrong ones. */
#include "gradient_cases.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* ---- by hand ---- */

/* Four equal logits: p = 1 / 4 each. */
static void equal_logits_by_hand(void **state)
{
    (void)state;
    static const float hidden[2] = { 2, NAN }, weight[4] = { 0 }, bias[4] = { 0 }, g[2] = { 1, NAN }, g_lse[2] = { 8, NAN };
    static const int64_t target[2] = { 2, -100 };
    static const double wanted[4] = { 1.75, 1.75, 2.75, 1.75 }; /* [v = 2] - 1 / 4 + 8 / 4 */
    flp_linear_logp_backward_problem problem = { .forward = { .dtype = FLP_F32,
                                                              .rows = 2,
                                                              .hidden = 1,
                                                              .vocab = 4,
                                                              .hidden_stride = 1,
                                                              .weight_stride = 1,
                                                              .bias_dtype = FLP_F32,
                                                              .target_dtype = FLP_I64 },
                                                 .g_lse = 1 };
    flp_linear_logp_args forward_args = {
        .rows = 2, .hidden = hidden, .weight = weight, .bias = bias, .target = target, .ignore_index = -100, .flags = FLP_IGNORE_INDEX
    };
    flp_linear_logp_backward_args args = { .rows = 2,
                                           .hidden = hidden,
                                           .weight = weight,
                                           .bias = bias,
                                           .target = target,
                                           .ignore_index = -100,
                                           .flags = FLP_IGNORE_INDEX,
                                           .g_logp = g,
                                           .g_lse = g_lse };
    flp_reference forward;
    flp_gradient_reference r;
    assert_true(flp_reference_compute(&problem.forward, &forward_args, &forward));
    assert_true(flp_gradient_reference_compute(&problem, &args, NULL, &forward, &r));
    for (int v = 0; v < 4; v++) {
        assert_true(fabs(r.bias.value[v] - wanted[v]) <= 1e-14);
        assert_true(fabs(r.weight.value[v] - 2 * wanted[v]) <= 1e-14);
    }
    assert_true(r.hidden.value[0] == 0 && r.hidden.value[1] == 0);
    flp_gradient_reference_free(&r);
    flp_reference_free(&forward);
}

/* ---- finite differences ---- */

enum { ROWS = 5, HIDDEN = 3, VOCAB = 7 };

typedef struct {
    flp_linear_logp_backward_problem problem;
    float hidden[ROWS * HIDDEN], weight[VOCAB * HIDDEN], bias[VOCAB], g_logp[ROWS], g_lse[ROWS], g_entropy[ROWS], row_temperature[ROWS];
    int64_t target[ROWS];
    double temperature;
    int has_row_temperature;
} small;

/* Multiples of 2^-6, so that steps of 2^-9 and 2^-8 stay exact in fp32. */
static void fill(uint64_t stream, float *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = (float)(rint(64 * flp_case_random_normal(stream, (uint64_t)i)) / 64);
}

static void make_small(small *s)
{
    *s = (small){ .problem = { .forward = { .dtype = FLP_F32,
                                            .rows = ROWS,
                                            .hidden = HIDDEN,
                                            .vocab = VOCAB,
                                            .hidden_stride = HIDDEN,
                                            .weight_stride = HIDDEN,
                                            .bias_dtype = FLP_F32,
                                            .target_dtype = FLP_I64 },
                               .g_lse = 1,
                               .g_entropy = 1 },
                  .target = { 3, -100, 0, 6, VOCAB } }; /* the second is ignored, the last out of range */
    fill(40, s->hidden, ROWS * HIDDEN);
    fill(41, s->weight, VOCAB * HIDDEN);
    fill(42, s->bias, VOCAB);
    fill(43, s->g_logp, ROWS);
    fill(44, s->g_lse, ROWS);
    fill(45, s->g_entropy, ROWS);
    for (int i = 0; i < ROWS; i++)
        s->row_temperature[i] = 0.5f + 0.25f * (float)i;
}

static flp_reference forward_of(const small *s)
{
    flp_reference reference;
    flp_linear_logp_args args = { .rows = ROWS,
                                  .hidden = s->hidden,
                                  .weight = s->weight,
                                  .bias = s->bias,
                                  .target = s->target,
                                  .ignore_index = -100,
                                  .flags = FLP_IGNORE_INDEX,
                                  .temperature = s->temperature,
                                  .row_temperature = s->has_row_temperature ? s->row_temperature : NULL };
    assert_true(flp_reference_compute(&s->problem.forward, &args, &reference));
    return reference;
}

static double loss_of(const small *s)
{
    flp_reference r = forward_of(s);
    double loss = 0;
    for (int i = 0; i < ROWS; i++)
        if (s->target[i] >= 0 && s->target[i] < VOCAB)
            loss += s->g_logp[i] * r.logp[i] + s->g_lse[i] * r.lse[i] + s->g_entropy[i] * r.entropy[i];
    flp_reference_free(&r);
    return loss;
}

static double difference(small *s, float *at, float step)
{
    float old = *at;
    *at = old + step;
    double up = loss_of(s);
    *at = old - step;
    double down = loss_of(s);
    *at = old;
    return (up - down) / (2 * (double)step);
}

/* Two central differences leave an error of the order of step^4 = 2^-32, times a fifth derivative. */
static void expect_differences(small *s, float *values, const flp_gradient *gradient)
{
    for (int64_t i = 0; i < gradient->count; i++) {
        double estimate = (4 * difference(s, &values[i], 0x1p-9f) - difference(s, &values[i], 0x1p-8f)) / 3;
        assert_true(fabs(estimate - gradient->value[i]) <= 1e-7);
    }
}

static void expect_all_differences(small *s)
{
    flp_reference forward = forward_of(s);
    flp_gradient_reference r;
    flp_linear_logp_backward_args args = { .rows = ROWS,
                                           .hidden = s->hidden,
                                           .weight = s->weight,
                                           .bias = s->bias,
                                           .target = s->target,
                                           .ignore_index = -100,
                                           .flags = FLP_IGNORE_INDEX,
                                           .temperature = s->temperature,
                                           .row_temperature = s->has_row_temperature ? s->row_temperature : NULL,
                                           .g_logp = s->g_logp,
                                           .g_lse = s->g_lse,
                                           .g_entropy = s->g_entropy };
    assert_true(flp_gradient_reference_compute(&s->problem, &args, NULL, &forward, &r));
    expect_differences(s, s->hidden, &r.hidden);
    expect_differences(s, s->weight, &r.weight);
    expect_differences(s, s->bias, &r.bias);
    flp_gradient_reference_free(&r);
    flp_reference_free(&forward);
}

static void the_gradients_are_those_of_finite_differences(void **state)
{
    (void)state;
    small s;
    make_small(&s);
    expect_all_differences(&s);
    s.temperature = 0.75;
    expect_all_differences(&s);
    s.problem.forward.softcap = 2;
    expect_all_differences(&s);
    s.temperature = 0;
    s.has_row_temperature = 1;
    expect_all_differences(&s);
}

/* ---- the check has to see what is wrong ---- */

typedef struct {
    flp_gradient_case c;
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    flp_linear_logp_backward_args args;
    char message[256];
} judged;

/* A case whose gradients, all fp32, are right. */
static void make_right(judged *j, const char *name)
{
    int i = 0;
    do
        flp_gradient_case_get(i, &j->c);
    while (strcmp(j->c.name, name) != 0 && ++i < flp_gradient_case_count());
    assert_string_equal(j->c.name, name);
    assert_true(flp_gradient_case_make_data(&j->c, &j->data, &j->reference));
    flp_gradient_case_args(&j->c, &j->data, NULL, NULL, &j->args);
    const flp_linear_logp_problem *p = &j->c.problem.forward;
    float *hidden = j->args.grad_hidden, *weight = j->args.grad_weight, *bias = j->args.grad_bias;
    int adds = j->c.problem.accumulate != 0, columns = p->weight_layout == FLP_HIDDEN_VOCAB;
    for (int64_t k = 0; k < p->rows * p->hidden; k++) {
        float *to = &hidden[k / p->hidden * j->c.problem.grad_hidden_stride + k % p->hidden];
        *to = (float)(j->reference.hidden.value[k] + (adds ? *to : 0));
    }
    for (int64_t k = 0; k < p->vocab * p->hidden; k++) {
        int64_t v = k / p->hidden, d = k % p->hidden, stride = j->c.problem.grad_weight_stride;
        float *to = &weight[columns ? d * stride + v : v * stride + d];
        *to = (float)(j->reference.weight.value[k] + (adds ? *to : 0));
    }
    for (int64_t v = 0; v < p->vocab; v++)
        bias[v] = (float)(j->reference.bias.value[v] + (adds ? bias[v] : 0));
}

static int is_right(judged *j)
{
    return flp_gradient_case_check(&j->c, &j->data, &j->reference, 0, j->message, sizeof j->message);
}

static void drop(judged *j)
{
    flp_gradient_reference_free(&j->reference);
    flp_gradient_case_free_data(&j->data);
}

static void right_gradients_pass(void **state)
{
    (void)state;
    static const char *const names[] = { "accumulate all in f32", "ignored rows hold NaN", "everything at once" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        judged j;
        make_right(&j, names[i]);
        if (!is_right(&j))
            fail_msg("%s: %s", names[i], j.message);
        drop(&j);
    }
}

/* Each change alone must be seen, and named. */
static void expect_seen(judged *j, float *at, float value, const char *name)
{
    float old = *at;
    assert_true(is_right(j));
    *at = value;
    assert_false(is_right(j));
    assert_non_null(strstr(j->message, name));
    *at = old;
}

static void wrong_gradients_are_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "ignored rows hold NaN");
    float *hidden = j.args.grad_hidden, *weight = j.args.grad_weight, *bias = j.args.grad_bias;
    expect_seen(&j, &hidden[0], hidden[0] * (1 + 1e-3f), "grad_hidden");
    expect_seen(&j, &hidden[64], 1e-6f, "grad_hidden"); /* the second row is ignored */
    expect_seen(&j, &hidden[130], NAN, "grad_hidden");
    expect_seen(&j, &weight[70], weight[71], "grad_weight");
    expect_seen(&j, &weight[999 * 64], 0, "grad_weight");
    expect_seen(&j, &bias[999], -bias[999], "grad_bias");
    drop(&j);
}

static void what_was_not_added_to_is_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "accumulate all in f32");
    float *weight = j.args.grad_weight;
    expect_seen(&j, &weight[5], (float)j.reference.weight.value[5], "grad_weight");
    drop(&j);
}

static void a_write_outside_the_rows_is_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "everything at once");
    float *hidden = j.args.grad_hidden, *weight = j.args.grad_weight, *bias = j.args.grad_bias;
    expect_seen(&j, &hidden[48], 0, "grad_hidden");
    expect_seen(&j, &hidden[-1], 0, "grad_hidden");
    expect_seen(&j, &weight[1003], 0, "grad_weight");
    expect_seen(&j, &bias[1003], 0, "grad_bias");
    drop(&j);
}

static void an_untouched_gradient_is_seen(void **state)
{
    (void)state;
    judged j;
    make_right(&j, "ignored rows hold NaN");
    flp_gradient_case_restore_outputs(&j.data);
    assert_false(is_right(&j));
    drop(&j);
}

static void names_of_cases_are_unique(void **state)
{
    (void)state;
    for (int i = 0; i < flp_gradient_case_count(); i++) {
        flp_gradient_case a, b;
        flp_gradient_case_get(i, &a);
        for (int k = 0; k < i; k++) {
            flp_gradient_case_get(k, &b);
            assert_string_not_equal(a.name, b.name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_logits_by_hand),          cmocka_unit_test(the_gradients_are_those_of_finite_differences),
        cmocka_unit_test(right_gradients_pass),          cmocka_unit_test(wrong_gradients_are_seen),
        cmocka_unit_test(what_was_not_added_to_is_seen), cmocka_unit_test(a_write_outside_the_rows_is_seen),
        cmocka_unit_test(an_untouched_gradient_is_seen), cmocka_unit_test(names_of_cases_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
