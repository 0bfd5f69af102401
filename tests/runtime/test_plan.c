/* Plans: what stops them, what they say of themselves, what they leave behind. */
#include "operators/linear/linear_logp_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_call.h"
#include "assertions.h"
#include "every_operator.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "fake_nvrtc.h"
#include "cli/operators.h"
#include "core/plan.h"

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

static void missing_pointers_are_named(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_plan_create(NULL, &problem, &plan), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_plan_create(context, NULL, &plan), "problem: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_plan_create(context, &problem, NULL), "plan: got NULL");
    problem.vocab = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_plan_create(context, &problem, &plan), "vocab: got 0");
    assert_null(plan);
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_target_errors(NULL, NULL, NULL), "plan: got NULL");
    assert_int_equal(-1, flp_plan_workspace_bytes(NULL, 0));
}

static void creation_fails(flp_status status, const char *part)
{
    assert_fails(status, flp_linear_logp_plan_create(context, &problem, &plan), part);
    assert_null(plan);
    assert_int_equal(0, fake_driver.live_blocks);
}

static void what_stops_a_plan_is_its_status_and_nothing_stays(void **state)
{
    flp_counters counters;

    (void)state;
    fake_library.nvrtc = 0;
    creation_fails(FLP_NO_NVRTC, "linear_logp");
    start_with(FLP_CONTEXT_NO_COMPILE);
    creation_fails(FLP_NO_NVRTC, "FLP_CONTEXT_NO_COMPILE");
    start_with(0);
    fake_nvrtc.result = 6;
    creation_fails(FLP_COMPILE_FAILED, "linear_logp.bf16.d64");
    start_with(0);
    fake_driver_fail(FAKE_module_load, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, -1);
    creation_fails(FLP_CAPTURING, "");
    start_with(0);
    fake_driver_fail(FAKE_memory_allocate, CUDA_ERROR_OUT_OF_MEMORY, 1);
    creation_fails(FLP_OUT_OF_MEMORY, "120 bytes of device memory for a plan's tallies: cuMemAlloc");
    fake_driver_fail(FAKE_stream_create, CUDA_ERROR_LAUNCH_FAILED, 1);
    creation_fails(FLP_CUDA_FAILED, "cuStreamCreate");
    fake_driver_fail(FAKE_copy_to_device, CUDA_ERROR_LAUNCH_FAILED, 1);
    creation_fails(FLP_CUDA_FAILED, "cuMemcpyHtoDAsync");
    flp_context_counters(context, &counters);
    assert_int_equal(0, counters.plans);
}

/* The library's own generator, but for what `change` does to a choice's kernels, the first of which is `first`. */
static void write_other_generator(const char *directory, const char *change)
{
    static const char other[] = "local real = require 'gen.real'\n"
                                "local select = real.select\n"
                                "function real.select(...)\n"
                                "  local chosen, reason = select(...)\n"
                                "  local kernels, first = chosen.kernels, chosen.kernels[1]\n"
                                "  local other = first.role == 'sum' and 'outer' or 'sum' -- a role that the operator does not have\n"
                                "  %s\n"
                                "  return chosen, reason\n"
                                "end\n"
                                "return real\n";
    const char *source = getenv("FUSEDLOGP_SRCDIR");
    char command[4096], lua[1024];

    snprintf(command, sizeof(command), "cd '%s' && cp -R gen templates '%s' && cd '%s/gen' && mv fusedlogp.lua real.lua", source ? source : ".", directory,
             directory);
    assert_int_equal(0, system(command));
    snprintf(lua, sizeof(lua), other, change);
    fake_directory_write(fake_directory_path(directory, "gen/fusedlogp.lua"), lua, strlen(lua));
}

static void start_with_other_generator(const char *change)
{
    const char *directory = fake_directory_make();

    write_other_generator(directory, change);
    setenv("FUSEDLOGP_SOURCE_DIR", directory, 1);
    start_with(0);
    unsetenv("FUSEDLOGP_SOURCE_DIR");
    fake_directory_remove(directory);
}

/* A plan of the problem that text names. */
static flp_status create_plan_of(const char *text)
{
    const flp_operator_calls *calls;
    flp_problem_storage named;

    assert_succeeds(flp_operators_parse(text, &calls, &named));
    return flp_create_plan(context, calls->op, &named, &plan);
}

static void a_plan_fails(const char *text, const char *part)
{
    assert_fails(FLP_INTERNAL, create_plan_of(text), part);
}

static const char *const operators[][3] = {
    /* a problem, the role of its first kernel, the operator that looks for it */
    { "linear_logp:bf16:n64:d64:v1000", "tile", "linear_logp" },
    { "linear_logp_backward:bf16:n64:d64:v1000:gh_bf16", "valid_rows", "linear_logp_backward" },
    { "linear_logp_backward:bf16:n64:d64:v1000:gh_bf16:forward", "save_exp_tile", "linear_logp" },
    { "linear_cross_entropy:bf16:n64:d64:v1000:gh_bf16", "save_exp_tile", "linear_logp" },
    { "linear_cross_entropy:bf16:n64:d64:v1000", "tile", "linear_logp" },
    { "logits_logp:bf16:n64:v1000", "rows", "logits_logp" },
    { "logits_logp_backward:bf16:n64:v1000:fused", "gradient", "logits_logp_backward" },
    { "weighted_sum:bf16:n64:d1000", "sum", "weighted_sum" },
    { "weighted_sum_backward:bf16:n64:d1000:gx_bf16:gw_bf16", "outer", "weighted_sum_backward" },
    { "scale:bf16:n64:d1000", "scale", "scale" },
};

static void a_role_without_a_kernel_is_named(void **state)
{
    char part[128];

    (void)state;
    start_with_other_generator("if #kernels > 1 then table.remove(kernels, 1) else first.role = other end");
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        /* Without its own tile a forward has the other kind's. */
        const char *role = strcmp(operators[i][1], "save_exp_tile") == 0 ? "tile" : operators[i][1];
        snprintf(part, sizeof(part), "the generator chose no kernel for the role %s of %s", role, operators[i][2]);
        a_plan_fails(operators[i][0], part);
    }
}

static void a_role_that_an_operator_does_not_have_is_named(void **state)
{
    char part[128];

    (void)state;
    start_with_other_generator("kernels[#kernels + 1] = { role = other, variant = first.variant }");
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        snprintf(part, sizeof(part), "the generator chose a kernel for the role %s, which ", strcmp(operators[i][1], "sum") == 0 ? "outer" : "sum");
        a_plan_fails(operators[i][0], part);
    }
}

/* For a forward that may leave saved exponentials, one of the two kinds of tile is chosen. */
static void two_tiles_are_refused(void **state)
{
    (void)state;
    start_with_other_generator("kernels[#kernels + 1] = { role = first.role == 'tile' and 'save_exp_tile' or 'tile', variant = first.variant }");
    a_plan_fails("linear_logp:bf16:n64:d64:v1000", "for the role tile, which linear_logp does not have");
    a_plan_fails("linear_cross_entropy:bf16:n64:d64:v1000:gh_bf16", "for the role tile, which linear_logp does not have");
}

/* Each block of the offsets' kernel clears one flag of a block of rows, so it may have no more rows than that. A tile of 64 rows has 64. */
static void offsets_of_more_rows_than_a_tile_are_refused(void **state)
{
    (void)state;
    start_with_other_generator("for _, kernel in ipairs(kernels) do\n"
                               "    if kernel.role == 'offsets' then kernel.variant = first.variant:gsub('bm64', 'bm128'):gsub('p6', 'p4') end\n"
                               "  end");
    a_plan_fails("linear_cross_entropy:bf16:n64:d64:v1000:gh_bf16", "s132.c1.p4.sm_90a: block_rows 128; wanted 1 to 64");
}

/* With hints (room for saved exponentials, one product), a token loss of its own program, a fallback, and each operator. */
static const char *const foreseen[] = { "linear_logp:bf16:n300:d64:v70000:argmax",
                                        "linear_logp:bf16:n300:d63:v70000:dv",
                                        "linear_logp_backward:bf16:n300:d64:v1000:gh_bf16:gw_f32:acc_weight",
                                        "linear_logp_backward:f32:n300:d64:v1000:gh_f32:forward",
                                        "linear_cross_entropy:bf16:n300:d64:v1000:gh_bf16:gw_bf16:smoothing",
                                        "linear_cross_entropy:bf16:n300:d64:v1000:gh_bf16:gw_bf16:budget100000000",
                                        "linear_cross_entropy:bf16:n300:d64:v1000:loss_policy_gradient",
                                        "logits_logp:bf16:n300:v1000:entropy",
                                        "logits_logp_backward:f16:n300:v131072:fused",
                                        "weighted_sum:bf16:n300:d1000",
                                        "weighted_sum_backward:bf16:n300:d1000:gx_bf16:gw_f32",
                                        "scale:bf16:n300:d1000" };

static void what_a_plan_takes_is_known_without_a_gpu(void **state)
{
    flp_selection selection;
    flp_problem_storage named;
    const flp_operator_calls *calls;

    (void)state;
    for (size_t i = 0; i < sizeof(foreseen) / sizeof(*foreseen); i++) {
        fake_driver.devices = 1;
        assert_succeeds(create_plan_of(foreseen[i]));
        fake_driver.devices = 0;
        assert_succeeds(flp_operators_parse(foreseen[i], &calls, &named));
        assert_succeeds(flp_plan_select(context, calls->op, &named, 90, &selection));
        assert_int_equal(plan->choice.selection.count, selection.count);
        for (int kernel = 0; kernel < selection.count; kernel++)
            assert_string_equal(plan->choice.selection.variant[kernel], selection.variant[kernel]);
        flp_plan_destroy(plan);
        plan = NULL;
    }
}

static const char *foreseen_problem(int row)
{
    return foreseen[row];
}

static void every_operator_is_foreseen(void **state)
{
    (void)state;
    assert_rows_for_every_operator(sizeof(foreseen) / sizeof(*foreseen), foreseen_problem);
}

static void what_no_plan_is_made_of_takes_no_kernels(void **state)
{
    flp_selection selection;
    const flp_operator_calls *calls;
    flp_problem_storage named;

    (void)state;
    problem.backend = FLP_BACKEND_CPU;
    assert_succeeds(flp_plan_select(context, &flp_linear_logp_operator, &problem, 90, &selection));
    assert_int_equal(0, selection.count);
    problem.backend = FLP_BACKEND_SM90A;
    assert_fails(FLP_NO_VARIANT, flp_plan_select(context, &flp_linear_logp_operator, &problem, 80, &selection), "not sm_90a");
    problem.vocab = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_select(context, &flp_linear_logp_operator, &problem, 90, &selection), "vocab: got 0");
    assert_fails(FLP_BAD_ARGUMENT, flp_operators_parse("linear_lgp:bf16", &calls, &named), "got \"linear_lgp\", wanted one of linear_logp, ");
}

/* Compiles the kernels that a plan of `problem` takes as PTX into directory, as fusedlogp-gen --ptx does. */
static void prebuild_ptx(const char *directory)
{
    const flp_context_options options = { .cache_directory = directory, .system_cache_directories = "", .cpu_threads = 1 };
    flp_context *builder;
    flp_selection selection;
    int compiled;

    assert_succeeds(flp_context_create(&options, &builder));
    assert_succeeds(flp_plan_select(builder, &flp_linear_logp_operator, &problem, 86, &selection));
    for (int i = 0; i < selection.count; i++)
        assert_succeeds(flp_kernel_store_prebuild(builder->store, selection.variant[i], &compiled, NULL));
    flp_context_destroy(builder);
}

static void without_a_compiler_kernels_of_an_older_gpu_run_from_ptx(void **state)
{
    const char *directory = fake_directory_make();
    const flp_context_options options = { .cache_directory = directory, .system_cache_directories = "", .cpu_threads = 1, .flags = FLP_CONTEXT_NO_COMPILE };

    (void)state;
    prebuild_ptx(directory);
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&options, &context));
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_int_equal(FLP_BACKEND_PORTABLE, flp_plan_backend(plan));
    assert_contains(flp_plan_describe(plan), "path: portable\nreason: PTX of sm_86, which the driver compiles: kernel linear_logp.bf16.d64.");
    assert_contains(flp_plan_describe(plan), ".sm_86\n");
    assert_contains(fake_call_log(), "warning: linear_logp:bf16:n300:d64:v70000 runs on Fake GPU 0 as PTX of sm_86");
    assert_int_equal(2, fake_driver.ptx_modules);
    flp_plan_destroy(plan);
    problem.backend = FLP_BACKEND_SM90A; /* asked for: that or nothing */
    assert_fails(FLP_NO_NVRTC, flp_linear_logp_plan_create(context, &problem, &plan), "sm_90a: it is in no cache directory");
    problem.backend = FLP_BACKEND_AUTO;
    problem.entropy = 1; /* not prebuilt */
    assert_fails(FLP_NO_NVRTC, flp_linear_logp_plan_create(context, &problem, &plan), ".sm_90a: it is in no cache directory");
    fake_directory_remove(directory);
}

static void a_gpu_newer_than_the_library_or_nvrtc_runs_from_ptx(void **state)
{
    (void)state;
    fake_driver.major = 13;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_contains(flp_plan_reason(plan), "PTX of sm_86, which the driver compiles: not sm_90a: compute capability 13.0");
    flp_plan_destroy(plan);
    start_with(0);
    fake_driver.major = 12;
    fake_nvrtc.newest_arch = 86;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_contains(flp_plan_reason(plan), "does not know sm_120");
    flp_plan_destroy(plan);
    plan = NULL;
    start_with(0);
    fake_driver.major = 7; /* older than all */
    problem.backend = FLP_BACKEND_PORTABLE;
    creation_fails(FLP_NO_VARIANT, "not portable: compute capability 7.0");
}

static void a_plan_describes_itself_line_by_line(void **state)
{
    static const char *const parts[] = { "problem: linear_logp:bf16:n300:d64:v70000\n",
                                         "path: sm_90a\n",
                                         "reason: first choice\n",
                                         "device: Fake GPU 0, compute capability 9.0, 132 multiprocessors\n",
                                         "tile kernel: linear_logp.bf16.d64.",
                                         "tile block: ",
                                         "tile cluster: ",
                                         "tile blocks: ",
                                         "tile shared bytes: ",
                                         "combine kernel: linear_logp_combine.",
                                         "split: ",
                                         "workspace bytes: ",
                                         "numerics: linear_logp." };

    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        assert_contains(flp_plan_describe(plan), parts[i]);
    assert_contains(flp_plan_describe(plan), flp_plan_numerics(plan));
    assert_contains(flp_plan_describe(plan), flp_linear_logp_plan_of(plan)->tile->manifest.variant);
}

static void a_fused_backward_of_logits_describes_its_cluster(void **state)
{
    flp_logits_logp_backward_problem fused;

    (void)state;
    assert_succeeds(flp_logits_logp_backward_problem_parse("logits_logp_backward:bf16:n64:v131072:fused", &fused));
    assert_succeeds(flp_logits_logp_backward_plan_create(context, &fused, &plan));
    assert_contains(flp_plan_describe(plan), "fused kernel: logits_logp_fused_cluster.");
    assert_contains(flp_plan_describe(plan), "\nfused cluster: 4\n");
}

/* The numerics of a plan for so many rows on a device of so many multiprocessors, malloc'ed. */
static char *numerics_of(int64_t rows, int multiprocessors, int64_t vocab)
{
    char *numerics;

    start_with(0);
    fake_driver.multiprocessors = multiprocessors;
    problem.rows = rows;
    problem.vocab = vocab;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    numerics = strdup(flp_plan_numerics(plan));
    flp_plan_destroy(plan);
    plan = NULL;
    return numerics;
}

static void the_numerics_depend_on_the_vocabulary_and_not_on_rows_or_device_size(void **state)
{
    char *one = numerics_of(1, 132, 131072), *many = numerics_of(8192, 132, 131072), *small_device = numerics_of(128, 78, 131072),
         *other = numerics_of(1, 132, 128256);

    (void)state;
    assert_string_equal(one, many);
    assert_string_equal(one, small_device);
    assert_string_not_equal(one, other);
    free(one);
    free(many);
    free(small_device);
    free(other);
}

/* partial [N][splits][2] and best likewise, moment [N][splits], target_logit [N][2], f32, each rounded up to 256 bytes. */
static void the_workspace_is_its_regions_and_nothing_else(void **state)
{
    const int64_t ticket = 256; /* a number, up to where the next part may begin */
    int64_t splits;

    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    splits = flp_linear_logp_plan_of(plan)->split.splits;
    assert_int_equal(0, flp_plan_workspace_bytes(plan, 0));
    assert_int_equal((splits * 8 + 255) / 256 * 256 + 256 + ticket, flp_plan_workspace_bytes(plan, 1));
    assert_int_equal((300 * splits * 8 + 255) / 256 * 256 + 2560 + ticket, flp_plan_workspace_bytes(plan, 300));
    assert_int_equal(-1, flp_plan_workspace_bytes(plan, 301));
    assert_int_equal(-1, flp_plan_workspace_bytes(plan, -1));
    flp_plan_destroy(plan);
    problem.argmax = 1;
    problem.rows = FLP_PROBLEM_ROWS_MAX;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_int_equal(FLP_PROBLEM_ROWS_MAX * (splits * 16 + 8) + ticket, flp_plan_workspace_bytes(plan, problem.rows));
    flp_plan_destroy(plan);
    problem.entropy = 1;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_int_equal(FLP_PROBLEM_ROWS_MAX * (splits * 20 + 8) + ticket, flp_plan_workspace_bytes(plan, problem.rows));
    flp_plan_destroy(plan);
    problem.backend = FLP_BACKEND_CPU;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_int_equal(0, flp_plan_workspace_bytes(plan, 300));
}

static flp_tally *tally; /* of bad targets */
static uint64_t met;

/* As a kernel does that began when the host had named the side. */
static void meet(uint64_t side, uint64_t row)
{
    tally->pair[side][0]++;
    if (row < tally->pair[side][1])
        tally->pair[side][1] = row;
    met++;
}

static void make_plan_with_tally(void)
{
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    tally = (flp_tally *)(uintptr_t)plan->target_errors;
    met = 0;
}

static void assert_target_errors(int64_t wanted_count, int64_t wanted_first)
{
    int64_t count = 7, first = 7;

    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(wanted_count, count);
    assert_int_equal(wanted_first, first);
}

static void target_errors_are_read_once(void **state)
{
    (void)state;
    make_plan_with_tally();
    assert_target_errors(0, -1);
    for (int round = 0; round < 3; round++) {
        meet(tally->side, 70);
        meet(tally->side, 41);
        meet(tally->side, 50);
        assert_target_errors(3, 41);
        assert_target_errors(0, -1);
    }
    meet(tally->side, 5);
    assert_succeeds(flp_plan_target_errors(plan, NULL, NULL));
    assert_target_errors(0, -1);
}

/* A kernel runs, with a bad target, at each of the driver's calls; one that began at the call before ends behind it, as long as nobody has
 * waited for the device since. */
static void meet_in_a_call(int function)
{
    static uint64_t before;

    if (function != FAKE_context_synchronize && function != FAKE_copy_to_host && function != FAKE_copy_to_device && function != FAKE_stream_synchronize)
        return;
    if (function == FAKE_context_synchronize)
        meet(before, 9);
    before = tally->side;
    meet(tally->side, 9);
}

static void no_target_error_is_lost_or_read_twice_while_kernels_run(void **state)
{
    int64_t count, all = 0;

    (void)state;
    make_plan_with_tally();
    fake_driver.on_call = meet_in_a_call;
    for (int round = 0; round < 5; round++) {
        assert_succeeds(flp_plan_target_errors(plan, &count, NULL));
        all += count;
    }
    fake_driver.on_call = NULL;
    assert_true(met > 5);
    assert_succeeds(flp_plan_target_errors(plan, &count, NULL));
    assert_int_equal(met, all + count);
}

static int enqueued;

/* Kernels that were enqueued before run when the device is first waited for, and read the side then. */
static void run_enqueued_in_a_wait(int function)
{
    for (; function == FAKE_context_synchronize && enqueued > 0; enqueued--)
        meet(tally->side, 9);
}

static void target_errors_of_executions_that_have_not_begun_are_waited_for(void **state)
{
    (void)state;
    make_plan_with_tally();
    fake_driver.on_call = run_enqueued_in_a_wait;
    enqueued = 3;
    assert_target_errors(3, 9);
    fake_driver.on_call = NULL;
    assert_target_errors(0, -1);
}

static void target_errors_outlast_a_call_that_could_not_read_them(void **state)
{
    static const int calls[] = { FAKE_context_synchronize, FAKE_copy_to_host, FAKE_copy_to_device };
    int64_t count, first, all = 0;

    (void)state;
    make_plan_with_tally();
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        meet(tally->side, 5);
        fake_driver_fail(calls[i], CUDA_ERROR_LAUNCH_FAILED, 1);
        assert_int_equal(FLP_CUDA_FAILED, flp_plan_target_errors(plan, &count, &first));
    }
    for (int round = 0; round < 2; round++) {
        assert_succeeds(flp_plan_target_errors(plan, &count, &first));
        all += count;
    }
    assert_int_equal(met, all);
    fake_driver.current = fake_driver_context(1);
    assert_fails(FLP_WRONG_CONTEXT, flp_plan_target_errors(plan, &count, &first), "number 1001, the plan belongs to number 1000");
}

static void a_plan_is_destroyed_from_any_context(void **state)
{
    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_int_equal(1, fake_driver.live_blocks);
    fake_driver.current = fake_driver_context(2);
    flp_plan_destroy(plan);
    plan = NULL;
    assert_int_equal(0, fake_driver.live_blocks);
    assert_ptr_equal(fake_driver_context(2), fake_driver.current);
    flp_plan_destroy(NULL);
}

static void a_destroyed_context_has_freed_the_plans_memory_itself(void **state)
{
    const flp_driver *driver;
    CUdeviceptr left;

    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    left = plan->tallies;
    fake_driver_fail(FAKE_context_id, CUDA_ERROR_CONTEXT_IS_DESTROYED, 1);
    flp_plan_destroy(plan);
    plan = NULL;
    assert_int_equal(0, fake_driver.calls[FAKE_memory_free]);
    assert_succeeds(flp_driver_get(&driver));
    driver->memory_free(left); /* what the context would have done */
}

static void counters_say_what_was_made(void **state)
{
    flp_counters counters;

    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    flp_context_counters(context, &counters);
    assert_int_equal(2, counters.compiled);
    assert_int_equal(2, counters.loaded);
    assert_int_equal(1, counters.plans);
    flp_plan_destroy(plan);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    flp_context_counters(context, &counters);
    assert_int_equal(2, counters.compiled);
    assert_int_equal(2, counters.plans);
}

/* In a child: the status of a new plan, of a call of the old one; _exit says which test failed. */
static int in_child(void)
{
    const flp_linear_logp_args args = fake_call_args(1);
    flp_plan *other;

    if (flp_linear_logp_plan_create(context, &problem, &other) != FLP_FORKED)
        return 1;
    if (!strstr(flp_error_message(), "forked"))
        return 2;
    if (flp_linear_logp_execute(plan, &args) != FLP_FORKED)
        return 3;
    flp_plan_destroy(plan);
    problem.backend = FLP_BACKEND_CPU;
    return flp_linear_logp_plan_create(context, &problem, &other) == FLP_OK ? 0 : 4;
}

static void a_forked_child_is_told_so(void **state)
{
    int status;
    pid_t child;

    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    child = fork();
    if (child == 0)
        _exit(in_child());
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFEXITED(status));
    assert_int_equal(0, WEXITSTATUS(status));
}

static void context_options_are_checked(void **state)
{
    flp_context *made;

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(&(flp_context_options){ .flags = 64 }, &made), "flags: got 0x40");
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(&(flp_context_options){ .cache_bytes = -1 }, &made), "cache_bytes: got -1");
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(&(flp_context_options){ .cpu_threads = -1 }, &made), "cpu_threads: got -1");
    assert_null(made);
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(NULL, NULL), "context: got NULL");
    flp_context_destroy(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(missing_pointers_are_named),
        TEST(what_stops_a_plan_is_its_status_and_nothing_stays),
        TEST(a_role_without_a_kernel_is_named),
        TEST(a_role_that_an_operator_does_not_have_is_named),
        TEST(two_tiles_are_refused),
        TEST(offsets_of_more_rows_than_a_tile_are_refused),
        TEST(what_a_plan_takes_is_known_without_a_gpu),
        TEST(every_operator_is_foreseen),
        TEST(what_no_plan_is_made_of_takes_no_kernels),
        TEST(without_a_compiler_kernels_of_an_older_gpu_run_from_ptx),
        TEST(a_gpu_newer_than_the_library_or_nvrtc_runs_from_ptx),
        TEST(a_plan_describes_itself_line_by_line),
        TEST(a_fused_backward_of_logits_describes_its_cluster),
        TEST(the_numerics_depend_on_the_vocabulary_and_not_on_rows_or_device_size),
        TEST(the_workspace_is_its_regions_and_nothing_else),
        TEST(target_errors_are_read_once),
        TEST(no_target_error_is_lost_or_read_twice_while_kernels_run),
        TEST(target_errors_of_executions_that_have_not_begun_are_waited_for),
        TEST(target_errors_outlast_a_call_that_could_not_read_them),
        TEST(a_plan_is_destroyed_from_any_context),
        TEST(a_destroyed_context_has_freed_the_plans_memory_itself),
        TEST(counters_say_what_was_made),
        TEST(a_forked_child_is_told_so),
        TEST(context_options_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
