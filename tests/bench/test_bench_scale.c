/* The benchmark of scale, on a driver without a device, whose kernels are computed here: what it measures and what it refuses. */
#include "scale.h"

#include <stdio.h>

#include "cpu/convert.h"
#include "fake_gpu.h"
#include "params/scale.h"
#include "runtime/assertions.h"

enum { ROWS = 100, COLUMNS = 256, COUNT = ROWS * COLUMNS };

static const flp_forward_options options = { .measure = { .repeats = 3 }, .regimes = 1 << FLP_BURST | 1 << FLP_SUSTAINED };
static int copies, calls, spoils;
static float last_factor;
static uintptr_t x_address;

/* ---- the device */

static void fill(void *const *parameters)
{
    uint16_t *to = *(void *const *)parameters[0];

    for (int i = 0; i < COUNT; i++)
        to[i] = flp_convert_f32_to_bf16((float)(1 + i % 1000));
}

static void scale(void *const *parameters)
{
    const flp_scale_params *given = parameters[0];
    uint16_t *x = given->x;

    calls++;
    last_factor = *given->factor;
    x_address = (uintptr_t)given->x;
    assert_int_equal(given->rows * given->columns, COUNT);
    for (int i = 0; i < COUNT && last_factor != 1; i++)
        x[i] = flp_convert_f32_to_bf16(flp_convert_bf16_to_f32(x[i]) * last_factor);
    if (spoils)
        x[COUNT - 1] ^= 1;
}

static void on_launch(const fake_launch *launch)
{
    if (strcmp(launch->kernel, "fill") == 0)
        fill(launch->parameters);
    else if (strcmp(launch->kernel, "copy") == 0)
        copies++;
    else
        scale(launch->parameters);
}

static int start(void **state)
{
    (void)state;
    fake_gpu_start(on_launch);
    copies = calls = spoils = 0;
    return 0;
}

static flp_status run(const char *text)
{
    return flp_scale_run(&fake_gpu, text, &options, &fake_gpu_result);
}

static void assert_number(const char *name, double wanted)
{
    assert_true(json_number_value(json_object_get(fake_gpu_result, name)) == wanted);
}

/* ---- the tests */

static void a_factor_is_timed_beside_as_many_copies(void **state)
{
    (void)state;
    assert_succeeds(run("scale:bf16:n100:d256"));
    assert_number("factor", -1);
    assert_number("work", COUNT * sizeof(uint16_t) * 2e-12);
    assert_true(last_factor == -1 && copies > 0);
    assert_int_equal(calls, copies + 3); /* the checked ones */
    assert_true(json_number_value(json_object_get(fake_gpu_result, "relative_error")) > 0);
    assert_int_equal(2, json_object_size(json_object_get(fake_gpu_result, "regimes")));
}

static void a_case_of_one_has_factor_1(void **state)
{
    (void)state;
    assert_succeeds(run("scale:bf16:n100:d256" FLP_SCALE_ONE));
    assert_number("factor", 1);
    assert_number("relative_error", 0);
    assert_true(last_factor == 1 && copies > 0);
    assert_string_equal("scale:bf16:n100:d256" FLP_SCALE_ONE, json_string_value(json_object_get(fake_gpu_result, "problem")));
}

static void x_is_aligned_to_no_more_than_the_case_says(void **state)
{
    (void)state;
    assert_succeeds(run("scale:bf16:n100:d256:align2"));
    assert_int_equal(2, x_address % 16);
    json_decref(fake_gpu_result);
    assert_succeeds(run("scale:bf16:n100:d256"));
    assert_int_equal(0, x_address % 16);
}

static void a_wrong_bit_is_refused(void **state)
{
    (void)state;
    spoils = 1;
    assert_fails(FLP_INTERNAL, run("scale:bf16:n100:d256"), "row 99, column 255");
    assert_fails(FLP_INTERNAL, run("scale:bf16:n100:d256" FLP_SCALE_ONE), "row 99, column 255");
    assert_int_equal(0, copies);
}

static void what_a_copy_cannot_stand_for_is_refused(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, run("scale:bf16:n100:d256:xs512"), "no strides");
    assert_fails(FLP_BAD_ARGUMENT, run("scale:bf16:n1:d9"), "whole 16 bytes");
    assert_fails(FLP_BAD_ARGUMENT, run("scale:bf16:n0:d256"), "wanted rows");
    assert_fails(FLP_BAD_ARGUMENT, run("scale:bf16:n100:d256:two"), "two");
}

static void the_usual_cases_are_problems(void **state)
{
    (void)state;
    for (const char *const *text = flp_scale_cases; *text; text++) {
        const char *one = strstr(*text, FLP_SCALE_ONE);
        flp_scale_problem problem;
        char name[64];
        assert_true(flp_scale_is_case(*text));
        snprintf(name, sizeof(name), "%.*s", one ? (int)(one - *text) : (int)strlen(*text), *text);
        assert_succeeds(flp_scale_problem_parse(name, &problem));
    }
    assert_false(flp_scale_is_case("n4096:d4096:v1024"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, fake_gpu_stop)
    const struct CMUnitTest tests[] = {
        TEST(a_factor_is_timed_beside_as_many_copies),    TEST(a_case_of_one_has_factor_1),
        TEST(x_is_aligned_to_no_more_than_the_case_says), TEST(a_wrong_bit_is_refused),
        TEST(what_a_copy_cannot_stand_for_is_refused),    TEST(the_usual_cases_are_problems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
