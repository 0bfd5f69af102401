/* The benchmarks of linear_logp, its backward and linear_cross_entropy, on a driver without a device and beside a cuBLAS that computes nothing: each kind of
 * step is measured to its end, with the temperature that its case names. */
#include "backward.h"

#include <math.h>

#include "backward_check.h"
#include "baselines.h"
#include "cross_entropy.h"
#include "device/gpu_reference.h"
#include "fake_gpu.h"
#include "params/linear_logp.h"
#include "params/linear_logp_backward.h"
#include "runtime/assertions.h"

enum { ROWS = 512 };

#define SIZES "bf16:n512:d64:v70000"
#define FORWARD "linear_logp:" SIZES
#define BACKWARD "linear_logp_backward:" SIZES ":gh_bf16:gw_bf16"
#define LOSS "linear_cross_entropy:" SIZES ":gh_bf16:gw_bf16"
#define LOSS_END ":sum:tokens"
#define ROOM ":budget268435456" /* for all saved exponentials */

static const flp_forward_options options = { .measure = { .repeats = 2 }, .regimes = 1 << FLP_BURST };
static int logits, hidden_gradients, weight_gradients;
static float forward_scale, backward_scale;
static double checked_temperature; /* of the last row; 0: it was not checked with any */
static float launched_temperature; /* the same in the kernels' array; 0: there is none */

/* ---- cuBLAS */

flp_status flp_cublas_open(CUstream stream, flp_cublas *cublas)
{
    (void)stream;
    *cublas = (flp_cublas){ .version = 130000 };
    return FLP_OK;
}

void flp_cublas_close(flp_cublas *cublas)
{
    (void)cublas;
}

int flp_cublas_takes(const flp_linear_logp_problem *problem)
{
    (void)problem;
    return 1;
}

flp_status flp_cublas_logits(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *hidden, const void *weight, void *of)
{
    (void)cublas, (void)problem, (void)hidden, (void)weight, (void)of;
    logits++;
    return FLP_OK;
}

flp_status flp_cublas_grad_hidden(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *dlogit, const void *weight, void *of)
{
    (void)cublas, (void)problem, (void)dlogit, (void)weight, (void)of;
    hidden_gradients++;
    return FLP_OK;
}

flp_status flp_cublas_grad_weight(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *dlogit, const void *hidden, void *of)
{
    (void)cublas, (void)problem, (void)dlogit, (void)hidden, (void)of;
    weight_gradients++;
    return FLP_OK;
}

/* ---- the checks against fp64 */

flp_status flp_backward_check(const flp_backward_answer *answer, flp_backward_errors *errors)
{
    checked_temperature = answer->temperatures ? answer->temperatures[ROWS - 1] : 0;
    *errors = (flp_backward_errors){ 0 };
    return FLP_OK;
}

flp_status flp_gpu_reference_compute(flp_gpu *of, const flp_gpu_kernels *kernels, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight,
                                     const flp_gpu_reference_options *given, int count, const int64_t *of_rows, const int64_t *targets,
                                     flp_gpu_reference_row *reference)
{
    (void)of, (void)kernels, (void)hidden, (void)weight, (void)of_rows, (void)targets;
    checked_temperature = given->temperatures ? given->temperatures[ROWS - 1] : 0;
    for (int i = 0; i < count; i++)
        reference[i] = (flp_gpu_reference_row){ .logp = -1 };
    return FLP_OK;
}

/* ---- the device */

static float last_of(const float *row_temperature)
{
    return row_temperature ? row_temperature[ROWS - 1] : 0;
}

/* A tile kernel's parameters follow its tensor maps: of hidden, of weight and, in the other of the two, of the saved exponentials. */
static void on_launch(const fake_launch *launch)
{
    const int saves = strncmp(launch->kernel, "flp_linear_logp_save_exp_", strlen("flp_linear_logp_save_exp_")) == 0;

    if (strncmp(launch->kernel, "flp_linear_logp_backward_rows", strlen("flp_linear_logp_backward_rows")) == 0) {
        const flp_backward_rows_params *params = launch->parameters[0];
        backward_scale = params->scale;
        launched_temperature = last_of(params->row_temperature);
    } else if (strncmp(launch->kernel, "flp_linear_logp_combine", strlen("flp_linear_logp_combine")) == 0) {
        const flp_linear_logp_combine_params *params = launch->parameters[0];
        for (int i = 0; i < ROWS; i++)
            params->logp[i] = -1;
    } else if (saves || strncmp(launch->kernel, "flp_linear_logp_bf16_", strlen("flp_linear_logp_bf16_")) == 0) {
        const flp_linear_logp_params *params = launch->parameters[saves ? 3 : 2];
        forward_scale = params->scale;
        launched_temperature = last_of(params->row_temperature);
    }
}

static int start(void **state)
{
    (void)state;
    fake_gpu_start(on_launch);
    logits = hidden_gradients = weight_gradients = 0;
    forward_scale = backward_scale = 0;
    checked_temperature = launched_temperature = 0;
    return 0;
}

static flp_status run(const char *text)
{
    json_decref(fake_gpu_result);
    fake_gpu_result = NULL;
    if (flp_backward_is_case(text))
        return flp_backward_run(&fake_gpu, text, &options, &fake_gpu_result);
    return flp_cross_entropy_is_bench_case(text) ? flp_cross_entropy_bench_run(&fake_gpu, text, &options, &fake_gpu_result)
                                                 : flp_forward_run(&fake_gpu, text, &options, &fake_gpu_result);
}

/* The results' part i. */
static const json_t *part(size_t i)
{
    return json_is_array(fake_gpu_result) ? json_array_get(fake_gpu_result, i) : fake_gpu_result;
}

static const char *text_of(size_t i, const char *name)
{
    return json_string_value(json_object_get(part(i), name));
}

/* ---- the tests */

static void every_kind_of_step_is_measured(void **state)
{
    static const struct {
        const char *text;
        size_t parts;
        const char *kernel; /* the part before its dtype */
        int logits;         /* cuBLAS's products of logits in a pair of the last part */
        int weight;
    } steps[] = {
        { BACKWARD, 2, "linear_logp_grad_logits.", 2, 1 },
        { BACKWARD ":forward", 1, "linear_logp_grad_logits.", 2, 1 },
        { BACKWARD ROOM ":forward", 1, "linear_logp_grad_logits.", 2, 1 }, /* so few rows do not use the room */
        { "linear_logp_backward:bf16:n512:d1024:v4000:gh_bf16:gw_bf16" ROOM ":forward", 1, "linear_logp_save_exp.", 1, 1 },
        { "linear_logp_backward:" SIZES ":gh_bf16", 2, "linear_logp_grad_logits.", 2, 0 },
        { "linear_logp_backward:" SIZES ":gh_bf16" ROOM ":forward", 1, "linear_logp_save_exp.", 1, 0 },
        { LOSS LOSS_END, 1, "linear_logp_save_exp.", 1, 1 },
        { LOSS ROOM LOSS_END, 1, "linear_logp_save_exp.", 1, 1 },
        { "linear_cross_entropy:" SIZES ":gh_bf16" LOSS_END, 1, "linear_logp_save_exp.", 1, 0 },
        { "linear_cross_entropy:" SIZES ":gh_bf16:gw_f32:acc_weight" LOSS_END, 1, "linear_logp_save_exp.", 1, 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        logits = hidden_gradients = weight_gradients = 0;
        assert_succeeds(run(steps[i].text));
        assert_int_equal(steps[i].parts, json_is_array(fake_gpu_result) ? json_array_size(fake_gpu_result) : 1);
        for (size_t j = 0; j < steps[i].parts; j++) {
            assert_true(strncmp(text_of(j, "kernel"), steps[i].kernel, strlen(steps[i].kernel)) == 0);
            assert_contains(text_of(j, "product"), "matrix_product.");
            assert_int_equal(1, json_object_size(json_object_get(part(j), "regimes")));
        }
        assert_contains(text_of(steps[i].parts - 1, "baseline"), steps[i].logits == 2 ? "twice" : "logits, grad");
        assert_true(logits > 0 && hidden_gradients > 0);
        assert_int_equal(weight_gradients, steps[i].weight ? hidden_gradients : 0);
    }
}

static void all_rows_have_the_temperature_of_the_case(void **state)
{
    const float scale = (float)(2 / log(2)); /* log2(e) / 0.5 */

    (void)state;
    assert_succeeds(run(FORWARD FLP_TEMPERATURE "0.5"));
    assert_string_equal(FORWARD FLP_TEMPERATURE "0.5", text_of(0, "problem"));
    assert_true(forward_scale == scale && launched_temperature == 0 && checked_temperature == 0.5);
    forward_scale = 0;
    assert_succeeds(run(BACKWARD FLP_TEMPERATURE "0.5"));
    assert_string_equal(BACKWARD FLP_TEMPERATURE "0.5", text_of(0, "problem"));
    assert_true(forward_scale == scale && backward_scale == scale && launched_temperature == 0 && checked_temperature == 0.5);
    forward_scale = backward_scale = 0;
    assert_succeeds(run(LOSS LOSS_END FLP_TEMPERATURE "0.5"));
    assert_true(forward_scale == scale && backward_scale == scale && launched_temperature == 0 && checked_temperature == 0.5);
}

static void each_row_has_a_temperature_of_its_own(void **state)
{
    static const char *const cases[] = { FORWARD FLP_ROW_TEMPERATURE, BACKWARD FLP_ROW_TEMPERATURE, BACKWARD ":forward" FLP_ROW_TEMPERATURE,
                                         LOSS LOSS_END FLP_ROW_TEMPERATURE };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        checked_temperature = launched_temperature = 0;
        assert_succeeds(run(cases[i]));
        assert_true(checked_temperature > 0.5 && checked_temperature < 1.5 && checked_temperature == (double)launched_temperature);
        assert_true(forward_scale == (float)(1 / log(2)));
        assert_contains(text_of(0, "problem"), FLP_ROW_TEMPERATURE);
    }
}

static void without_one_there_is_none(void **state)
{
    (void)state;
    assert_succeeds(run("n512:d64:v70000"));
    assert_string_equal(FORWARD, text_of(0, "problem"));
    assert_true(forward_scale == (float)(1 / log(2)) && launched_temperature == 0 && checked_temperature == 0);
}

static void other_temperatures_are_refused(void **state)
{
    static const char *const cases[] = { FORWARD FLP_TEMPERATURE,          FORWARD FLP_TEMPERATURE "0",
                                         FORWARD FLP_TEMPERATURE "-1",     FORWARD FLP_TEMPERATURE "x",
                                         FORWARD FLP_TEMPERATURE "1e30",   FORWARD FLP_TEMPERATURE "nan",
                                         BACKWARD FLP_TEMPERATURE "1e-30", LOSS LOSS_END FLP_TEMPERATURE "1.0000000000000000000000000000000001" };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_fails(FLP_BAD_ARGUMENT, run(cases[i]), "wanted 2^-64 .. 2^64");
    assert_fails(FLP_BAD_ARGUMENT, run(FORWARD FLP_ROW_TEMPERATURE "0.5"), "row_temperature0.5");
    assert_fails(FLP_BAD_ARGUMENT, run(BACKWARD ":filter1e-08" FLP_TEMPERATURE "0.5"), "a filter");
    assert_int_equal(0, logits);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, fake_gpu_stop)
    const struct CMUnitTest tests[] = {
        TEST(every_kind_of_step_is_measured),        TEST(all_rows_have_the_temperature_of_the_case),
        TEST(each_row_has_a_temperature_of_its_own), TEST(without_one_there_is_none),
        TEST(other_temperatures_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
