/* Plans without a compiler: prebuilds hold the kernels of records and of advice, and a tuning whose kernels are not there is left out. */
#include <stdio.h>
#include <string.h>

#include "fake_call.h"
#include "fake_driver.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_plan.h"
#include "tuned_plan.h"

/* Options of a context that keeps its kernels in a directory of this name below that of the records. */
static flp_context_options keeping_kernels_in(const char *name, unsigned flags)
{
    static char kernels[512];

    snprintf(kernels, sizeof(kernels), "%s/%s", tuned.records, name);
    return (flp_context_options){
        .cache_directory = kernels, .system_cache_directories = "", .flags = flags, .records_directory = tuned.records, .system_records_directories = ""
    };
}

static void prebuild(void *data, const char *variant)
{
    int compiled;

    (void)data;
    assert_succeeds(flp_kernel_store_prebuild(tuned.context->store, variant, &compiled, NULL));
}

/* What fusedlogp-gen does on a machine without a GPU. */
static void prebuild_kernels_of(const flp_operator *op, const void *problem)
{
    fake_driver.devices = 0;
    assert_succeeds(flp_plan_visit_kernels(tuned.context, op, problem, 90, prebuild, NULL));
    fake_driver.devices = 1;
}

/* Prebuilds the kernels of the records that are there, and plans without a compiler. */
static void plan_prebuilt(const char *name, unsigned flags)
{
    flp_context_options options = keeping_kernels_in(name, flags);

    tuned_open(&options);
    tuned.problem.rows = 4096;
    prebuild_kernels_of(&flp_linear_logp_operator, &tuned.problem);
    options.flags |= FLP_CONTEXT_NO_COMPILE;
    tuned_open(&options);
    tuned_make_plan();
}

/* As in an image that was prebuilt without the records of its machine. */
static void without_a_compiler_a_record_whose_kernels_are_not_there_is_left_out(void **state)
{
    const flp_record record = tuned_record_of(tuned_text, "tile.cluster=1,tile.stages=3", 0.98);
    flp_context_options options = keeping_kernels_in("kernels", 0);

    (void)state;
    tuned_open(&options);
    tuned_make_plan();
    tuned_publish(&record);
    options.flags = FLP_CONTEXT_NO_COMPILE;
    tuned_open(&options);
    tuned_make_plan();
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".c1.p4.");
    assert_contains(fake_call_log(), "the kernels of its tuning, tile.cluster=1,tile.stages=3, are in no cache");
    assert_contains(flp_plan_describe(tuned.plan), "tuning: default (the kernels of its tuning are in no cache and cannot be compiled)\n");
    options.flags |= FLP_CONTEXT_REPLAY;
    tuned_open(&options);
    assert_fails(FLP_NO_NVRTC, flp_linear_logp_plan_create(tuned.context, &tuned.problem, &tuned.plan), ".c1.p3.");
}

static void prebuilds_have_the_kernels_of_any_machine_s_records(void **state)
{
    flp_record record = tuned_record_of(tuned_text, "tile.cluster=1,tile.stages=3", 0.98);

    (void)state;
    tuned_publish(&record);
    plan_prebuilt("own", 0);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".c1.p3.");
    snprintf(record.environment.driver, sizeof(record.environment.driver), "999");
    snprintf(record.tuning, sizeof(record.tuning), "tile.stages=2");
    tuned_publish(&record);
    plan_prebuilt("other machine", 0);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(tuned.plan)); /* this machine's stays the one that is taken */
    assert_contains(tuned_tile_variant(), ".c1.p3.");
}

static void prebuilds_have_the_kernels_of_the_nearest_shape_s_record(void **state)
{
    const flp_record near = tuned_record_of("linear_logp:bf16:n8192:d2048:v131072", "tile.stages=3", 0.95);

    (void)state;
    tuned_publish(&near);
    plan_prebuilt("near", 0);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".p3.");
}

/* Where they were not prebuilt, the kernels of no tuning do. */
static void prebuilds_have_the_kernels_that_are_advised(void **state)
{
    (void)state;
    for (int advised = 0; advised < 2; advised++) {
        flp_context_options options = keeping_kernels_in(advised ? "advised" : "default", 0);

        tuned_open(&options);
        if (advised)
            prebuild_kernels_of(&flp_linear_cross_entropy_operator, &tuned_step);
        else
            tuned_make_step_plan();
        tuned_make_memory_slow();
        options.flags = FLP_CONTEXT_NO_COMPILE;
        tuned_open(&options);
        assert_contains(tuned_make_step_plan(), advised ? ".bm128.bv256.c2.p4." : ".wg128.bv128.");
        assert_int_equal(advised ? FLP_TUNED_MODEL : FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    }
}

static void prebuilds_have_other_bits_where_that_is_asked_for(void **state)
{
    const flp_record decision = tuned_decision_of("tile.bv=128"), record = tuned_record_of(tuned_text, "tile.bv=128,tile.stages=3", 0.9);

    (void)state;
    tuned_publish(&decision);
    plan_prebuilt("plain", 0);
    assert_contains(tuned_tile_variant(), ".bv168.");
    plan_prebuilt("decided", FLP_CONTEXT_TUNED_BITS);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".bv128.");
    tuned_publish(&record);
    plan_prebuilt("record", FLP_CONTEXT_TUNED_BITS);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".bv128.");
    assert_contains(tuned_tile_variant(), ".p3.");
}

/* What was prebuilt without the record of its rows: the bits stay what was decided. */
static void without_its_kernels_the_bits_are_those_that_were_decided(void **state)
{
    const flp_record decision = tuned_decision_of("tile.bv=128"), record = tuned_record_of(tuned_text, "tile.bv=128,tile.stages=3", 0.9);
    flp_context_options options = keeping_kernels_in("kernels", FLP_CONTEXT_TUNED_BITS);

    (void)state;
    tuned_publish(&decision);
    tuned_open(&options);
    tuned_make_plan();
    tuned_publish(&record);
    options.flags |= FLP_CONTEXT_NO_COMPILE;
    tuned_open(&options);
    tuned_make_plan();
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    assert_string_equal("tile.bv=128", flp_plan_tuning(tuned.plan));
    assert_contains(tuned_tile_variant(), ".bv128.");
}

static int64_t rows_of_a_chunk(void)
{
    return flp_linear_logp_backward_plan_of(tuned.plan)->work.chunks.row_chunk;
}

/* Without the kernels of this GPU, plans run from the PTX of an older one, which no tuning is for. */
static void what_runs_from_ptx_has_no_tuned_launches(void **state)
{
    const flp_linear_logp_backward_problem frozen = { .forward = { .dtype = FLP_BF16, .rows = 4096, .hidden = 2048, .vocab = 131072 },
                                                      .grad_hidden = FLP_BF16,
                                                      .with_forward = 1 };
    const flp_operator *op = &flp_linear_logp_backward_operator;
    flp_context_options options = keeping_kernels_in("ptx", 0);
    flp_selection selection;
    int64_t rows;

    (void)state;
    tuned_open(&options);
    assert_succeeds(flp_plan_select(tuned.context, op, &frozen, 86, &selection));
    for (int i = 0; i < selection.count; i++)
        prebuild(NULL, selection.variant[i]);
    options.flags = FLP_CONTEXT_NO_COMPILE;
    tuned_open(&options);
    assert_succeeds(flp_create_plan(tuned.context, op, &frozen, &tuned.plan));
    assert_contains(flp_plan_reason(tuned.plan), "PTX of sm_86");
    rows = rows_of_a_chunk();
    flp_plan_destroy(tuned.plan);
    assert_succeeds(flp_create_plan_tuned(tuned.context, op, &frozen, "chunks.rows=8", &tuned.plan));
    assert_contains(flp_plan_reason(tuned.plan), "PTX of sm_86");
    assert_string_equal("", flp_plan_tuning(tuned.plan));
    assert_int_equal(rows, rows_of_a_chunk());
    assert_int_not_equal(rows, 8 * FLP_BACKWARD_ROW_BLOCK);
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, tuned_start, tuned_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(without_a_compiler_a_record_whose_kernels_are_not_there_is_left_out),
        test_of(prebuilds_have_the_kernels_of_any_machine_s_records),
        test_of(prebuilds_have_the_kernels_of_the_nearest_shape_s_record),
        test_of(prebuilds_have_the_kernels_that_are_advised),
        test_of(prebuilds_have_other_bits_where_that_is_asked_for),
        test_of(what_runs_from_ptx_has_no_tuned_launches),
        test_of(without_its_kernels_the_bits_are_those_that_were_decided),
    };

    return cmocka_run_group_tests_name("tuned prebuilt", tests, NULL, NULL);
}
