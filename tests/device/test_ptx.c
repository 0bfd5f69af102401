/* Kernels of an older GPU as PTX, which this GPU's driver compiles: they are used if there is neither a cubin nor NVRTC, the plan says so, and they are
 * right. */
#include <stdio.h>
#include <stdlib.h>

#include "core/context.h"
#include "core/plan.h"
#include "device/fixture.h"
#include "runtime/fake_directory.h"

static flp_fixture fixture;

static flp_context *make_context(const char *directory, unsigned flags)
{
    const flp_context_options options = { .cache_directory = directory, .system_cache_directories = "", .cpu_threads = 1, .flags = flags };
    flp_context *context;

    assert_succeeds(flp_context_create(&options, &context));
    return context;
}

/* Prebuilds the PTX kernels of the problem, and nothing else, in directory. */
static void prebuild(const char *directory, const char *problem)
{
    flp_context *context = make_context(directory, 0);
    const flp_wanted_kernels wanted = { problem, flp_device_test.gpu.facts.compute_capability, "ptx", "" };
    flp_selection selection;
    int compiled;

    assert_succeeds(flp_generator_select(flp_kernel_store_generator(context->store), &wanted, &selection));
    for (int i = 0; i < selection.count; i++) {
        assert_succeeds(flp_kernel_store_prebuild(context->store, selection.variant[i], &compiled, NULL));
        assert_int_equal(1, compiled);
    }
    flp_context_destroy(context);
}

/* Executes the plan, and compares what it has written with fp64. */
static void execute_and_check(flp_plan *plan, const flp_reference *reference)
{
    flp_linear_logp_args args = fixture.args;
    char message[512] = "";
    int intact;

    args.workspace = NULL;
    args.workspace_bytes = 0;
    flp_fixture_poison(&fixture);
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_succeeds(flp_gpu_synchronize(&flp_device_test.gpu));
    assert_succeeds(flp_device_case_download(&flp_device_test.gpu, &fixture.data, &fixture.on_device, &intact, message, sizeof(message)));
    if (!intact || !flp_case_check(&fixture.c, &fixture.data, reference, message, sizeof(message)))
        fail_msg("%s: %s", flp_plan_describe(plan), message);
}

static void a_gpu_runs_an_older_ones_kernels_from_ptx(void **state)
{
    const char *directory = fake_directory_make();
    flp_linear_logp_problem problem;
    flp_linear_logp_args on_host;
    flp_reference reference;
    char text[256];
    flp_context *context;
    flp_plan *portable, *from_ptx;

    (void)state;
    flp_device_test_need_kernels();
    if (flp_device_test.gpu.facts.compute_capability <= 86)
        skip();
    flp_fixture_set_up(&fixture);
    flp_case_args(&fixture.c, &fixture.data, NULL, &on_host);
    assert_true(flp_reference_compute(&fixture.c.problem, &on_host, &reference));
    problem = fixture.c.problem;
    problem.backend = FLP_BACKEND_AUTO;
    assert_succeeds(flp_linear_logp_problem_format(&problem, text, sizeof(text)));
    prebuild(directory, text);
    context = make_context(directory, FLP_CONTEXT_NO_COMPILE);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &from_ptx));
    assert_contains(flp_plan_describe(from_ptx), "PTX of sm_86, which the driver compiles");
    problem.backend = FLP_BACKEND_PORTABLE;
    assert_succeeds(flp_linear_logp_plan_create(flp_device_test.context, &problem, &portable));
    /* The numeric identities differ, because the tensor cores' truncation is corrected only on some architectures (gen/kernels/tile_config.lua). */
    assert_contains(flp_plan_numerics(from_ptx), ".sm_86;");
    assert_string_not_equal(flp_plan_numerics(portable), flp_plan_numerics(from_ptx));
    execute_and_check(from_ptx, &reference);
    execute_and_check(portable, &reference);
    flp_plan_destroy(portable);
    flp_plan_destroy(from_ptx);
    flp_context_destroy(context);
    flp_reference_free(&reference);
    flp_fixture_tear_down(&fixture);
    fake_directory_remove(directory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { flp_device_test_of(a_gpu_runs_an_older_ones_kernels_from_ptx) };

    return flp_device_test_main("ptx", tests, argc, argv);
}
