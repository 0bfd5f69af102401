/* Kernels of an older GPU as PTX, which this GPU's driver compiles: found where there is neither a cubin nor a compiler, said, and right to the bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Leaves the PTX kernels of the problem, and nothing else, in directory. */
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

static void execute(flp_plan *plan, uint32_t *logp)
{
    flp_linear_logp_args args = fixture.args;

    args.workspace = NULL;
    args.workspace_bytes = 0;
    flp_fixture_poison(&fixture);
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    flp_fixture_fetch(&fixture, logp);
}

/* The identity names what a kernel was compiled for: this GPU by NVRTC, sm_86 by the driver. */
static void assert_same_but_for_the_architecture(const char *of_this_gpu, const char *from_ptx)
{
    char this_gpu[16];
    const char *at;

    snprintf(this_gpu, sizeof(this_gpu), ".sm_%d;", flp_device_test.gpu.facts.compute_capability);
    at = strstr(of_this_gpu, this_gpu);
    assert_non_null(at);
    assert_memory_equal(of_this_gpu, from_ptx, (size_t)(at - of_this_gpu));
    assert_memory_equal(".sm_86;", from_ptx + (at - of_this_gpu), strlen(".sm_86;"));
    assert_string_equal(at + strlen(this_gpu), from_ptx + (at - of_this_gpu) + strlen(".sm_86;"));
}

static void a_gpu_runs_an_older_ones_kernels_from_ptx(void **state)
{
    const char *directory = fake_directory_make();
    flp_linear_logp_problem problem;
    uint32_t wanted[FLP_FIXTURE_ROWS] = { 0 }, got[FLP_FIXTURE_ROWS] = { 0 };
    char text[256];
    flp_context *context;
    flp_plan *portable, *from_ptx;

    (void)state;
    flp_device_test_need_kernels();
    if (flp_device_test.gpu.facts.compute_capability <= 86)
        skip();
    flp_fixture_set_up(&fixture);
    problem = fixture.c.problem;
    problem.backend = FLP_BACKEND_AUTO;
    assert_succeeds(flp_linear_logp_problem_format(&problem, text, sizeof(text)));
    prebuild(directory, text);
    context = make_context(directory, FLP_CONTEXT_NO_COMPILE);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &from_ptx));
    assert_contains(flp_plan_describe(from_ptx), "PTX of sm_86, which the driver compiles");
    problem.backend = FLP_BACKEND_PORTABLE;
    assert_succeeds(flp_linear_logp_plan_create(flp_device_test.context, &problem, &portable));
    assert_same_but_for_the_architecture(flp_plan_numerics(portable), flp_plan_numerics(from_ptx));
    execute(portable, wanted);
    execute(from_ptx, got);
    assert_memory_equal(wanted, got, sizeof(wanted));
    flp_plan_destroy(portable);
    flp_plan_destroy(from_ptx);
    flp_context_destroy(context);
    flp_fixture_tear_down(&fixture);
    fake_directory_remove(directory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { flp_device_test_of(a_gpu_runs_an_older_ones_kernels_from_ptx) };

    return flp_device_test_main("ptx", tests, argc, argv);
}
