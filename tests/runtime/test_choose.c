/* Which path a plan takes, and the reason it gives. */
#include "core/choose.h"

#include <stdio.h>

#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"

static flp_context *context;
static flp_linear_logp_problem problem;
static flp_plan *plan;

static int start(void **state)
{
    (void)state;
    context = fake_call_start(0);
    problem = fake_call_problem();
    plan = NULL;
    return 0;
}

/* Every test ends with nothing left on the device. */
static int stop(void **state)
{
    (void)state;
    flp_plan_destroy(plan);
    flp_context_destroy(context);
    return fake_driver.live_blocks || fake_driver.live_modules;
}

static void start_with(unsigned flags)
{
    flp_context_destroy(context);
    context = fake_call_start(flags);
}

static void assert_path(const char *path, const char *reason)
{
    char lines[1200];

    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_string_equal(path, flp_backend_name(flp_plan_backend(plan)));
    snprintf(lines, sizeof(lines), "%s\n", flp_plan_reason(plan));
    assert_int_equal(0, strncmp(reason, lines, strlen(reason)));
    snprintf(lines, sizeof(lines), "\npath: %s\nreason: %s\n", path, flp_plan_reason(plan));
    assert_contains(flp_plan_describe(plan), lines);
    flp_plan_destroy(plan);
    plan = NULL;
}

static void a_hopper_device_takes_sm_90a_first(void **state)
{
    (void)state;
    assert_path("sm_90a", "first choice\n");
    assert_contains(fake_call_log(), "plan linear_logp:bf16:n300:d64:v70000: sm_90a (first choice)");
}

static void other_devices_take_the_portable_path_and_say_why(void **state)
{
    static const int capabilities[] = { 80, 86, 89, 100, 120 };

    (void)state;
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++) {
        start_with(0);
        fake_driver.major = capabilities[i] / 10;
        fake_driver.minor = capabilities[i] % 10;
        assert_path("portable", "not sm_90a: compute capability");
    }
}

static void what_tma_cannot_read_takes_the_portable_path(void **state)
{
    (void)state;
    problem.pointer_alignment = 8;
    assert_path("portable", "not sm_90a: TMA");
    problem.pointer_alignment = 0;
    problem.hidden_stride = FAKE_CALL_HIDDEN + 1;
    assert_path("portable", "not sm_90a: TMA");
    problem.hidden_stride = 0;
    problem.dtype = FLP_F32;
    problem.weight_layout = FLP_HIDDEN_VOCAB;
    assert_path("portable", "not sm_90a: WGMMA reads tf32 only along D");
}

static void a_driver_without_tensor_maps_leaves_the_portable_path(void **state)
{
    (void)state;
    fake_library.missing = "cuTensorMapEncodeTiled";
    assert_path("portable", "not sm_90a: the CUDA driver has no cuTensorMapEncodeTiled\n");
    problem.backend = FLP_BACKEND_PORTABLE;
    assert_path("portable", "first choice\n");
    problem.backend = FLP_BACKEND_SM90A;
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(context, &problem, &plan), "backend sm_90a: the CUDA driver has no cuTensorMapEncodeTiled");
}

static void kernels_without_tensor_maps_need_no_driver_that_encodes_them(void **state)
{
    const flp_logits_logp_problem logits = { .dtype = FLP_BF16, .rows = 4, .vocab = 1000 };

    (void)state;
    fake_library.missing = "cuTensorMapEncodeTiled";
    assert_succeeds(flp_logits_logp_plan_create(context, &logits, &plan));
    assert_int_equal(FLP_BACKEND_SM90A, flp_plan_backend(plan));
    assert_string_equal("first choice", flp_plan_reason(plan));
}

static void nothing_is_said_of_no_plan(void **state)
{
    (void)state;
    assert_int_equal(FLP_BACKEND_AUTO, flp_plan_backend(NULL));
    assert_string_equal("", flp_plan_reason(NULL));
    assert_string_equal("unknown backend", flp_backend_name((flp_backend)4));
    assert_string_equal("auto", flp_backend_name(FLP_BACKEND_AUTO));
}

static void a_device_without_kernels_takes_the_cpu_with_a_warning(void **state)
{
    (void)state;
    fake_driver.major = 7;
    assert_path("cpu", "not sm_90a: compute capability 7.0 has no WGMMA; not portable: compute capability 7.0");
    assert_contains(fake_call_log(), "warning: linear_logp:bf16:n300:d64:v70000 runs on the CPU beside Fake GPU 0: not sm_90a");
}

static void without_a_driver_the_cpu_answers_and_says_why(void **state)
{
    (void)state;
    fake_library.driver = 0;
    assert_path("cpu", "neither libcuda.so.1 nor libcuda.so can be loaded");
}

static void a_context_without_gpu_never_touches_the_driver(void **state)
{
    (void)state;
    start_with(FLP_CONTEXT_NO_GPU);
    assert_path("cpu", "the context has FLP_CONTEXT_NO_GPU\n");
    problem.backend = FLP_BACKEND_CPU;
    assert_path("cpu", "asked for\n");
    problem.backend = FLP_BACKEND_PORTABLE;
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(context, &problem, &plan), "backend portable: the context has FLP_CONTEXT_NO_GPU");
    assert_string_equal("", fake_library.opened);
}

static void a_backend_that_cannot_answer_is_an_error_with_the_reason(void **state)
{
    (void)state;
    problem.backend = FLP_BACKEND_SM90A;
    problem.dtype = FLP_F32;
    problem.precision = FLP_PRECISION_EXACT;
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(context, &problem, &plan), "backend sm_90a: not sm_90a: exact fp32 takes no tensor cores");
    assert_null(plan);
    start_with(0);
    fake_driver.major = 7;
    problem.backend = FLP_BACKEND_PORTABLE;
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(context, &problem, &plan), "backend portable: not portable: compute capability 7.0");
    start_with(0);
    fake_library.driver = 0;
    assert_fails(FLP_NO_DRIVER, flp_linear_logp_plan_create(context, &problem, &plan), "backend portable: neither libcuda.so.1");
}

static void a_device_without_a_current_context_is_an_error_and_not_the_cpu(void **state)
{
    (void)state;
    fake_driver.current = NULL;
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp_plan_create(context, &problem, &plan), "backend auto: a GPU is there");
    problem.backend = FLP_BACKEND_SM90A;
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp_plan_create(context, &problem, &plan), "no CUDA context is current");
    problem.backend = FLP_BACKEND_CPU;
    assert_path("cpu", "asked for\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hopper_device_takes_sm_90a_first),
        TEST(other_devices_take_the_portable_path_and_say_why),
        TEST(what_tma_cannot_read_takes_the_portable_path),
        TEST(a_driver_without_tensor_maps_leaves_the_portable_path),
        TEST(kernels_without_tensor_maps_need_no_driver_that_encodes_them),
        TEST(nothing_is_said_of_no_plan),
        TEST(a_device_without_kernels_takes_the_cpu_with_a_warning),
        TEST(without_a_driver_the_cpu_answers_and_says_why),
        TEST(a_context_without_gpu_never_touches_the_driver),
        TEST(a_backend_that_cannot_answer_is_an_error_with_the_reason),
        TEST(a_device_without_a_current_context_is_an_error_and_not_the_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
