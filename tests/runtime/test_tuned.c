/* Plans and records: which tuning a plan takes, what it says of it, and that nothing in a record can fail a call. */
#include "core/tuned.h"

#include <stdio.h>
#include <string.h>

#include "core/plan.h"
#include "fake_call.h"
#include "fake_cmocka.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "fake_record.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_plan.h"
#include "tune/untuned.h"

static flp_context *context;
static flp_linear_logp_problem problem;
static flp_plan *plan;
static const char *root;

static void make_context(unsigned flags)
{
    const flp_context_options options = { .cache_directory = "", .flags = flags, .records_directory = root, .system_records_directories = "" };

    flp_plan_destroy(plan);
    plan = NULL;
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&options, &context));
}

static int start(void **state)
{
    (void)state;
    flp_context_destroy(fake_call_start(0)); /* a device is there */
    context = NULL;
    plan = NULL;
    root = fake_directory_make();
    make_context(0);
    problem = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 3000, .hidden = 2048, .vocab = 131072 };
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_plan_destroy(plan);
    flp_context_destroy(context);
    fake_directory_remove(root);
    return fake_driver.live_blocks || fake_driver.live_modules;
}

/* A record of this machine that says `tuning` of a problem; one that is no tuning has the default's identity. */
static flp_record record_of(const char *text, const char *tuning, double ratio)
{
    flp_wanted_kernels wanted = { text, 90, "sm_90a", tuning };
    flp_record record = fake_record();
    flp_device device;

    if (flp_tuned_identify(context, &wanted, &record.identity) != FLP_OK) {
        wanted.tuning = "";
        assert_succeeds(flp_tuned_identify(context, &wanted, &record.identity));
    }
    assert_succeeds(flp_device_current(&device));
    flp_environment_describe(&device, &record.environment);
    snprintf(record.identity.problem, sizeof(record.identity.problem), "%s", text);
    snprintf(record.tuning, sizeof(record.tuning), "%s", tuning);
    record.ratio = record.ratio_low = record.ratio_high = ratio;
    return record;
}

/* That decides on the bits of any number of rows. */
static flp_record decision_of(const char *tuning)
{
    const flp_wanted_kernels wanted = { "linear_logp:bf16:n3000:d2048:v131072", 90, "sm_90a", "" };
    flp_record record = record_of("linear_logp:bf16:n4096:d2048:v131072", "", 0.95);
    flp_problem_storage normal;

    assert_succeeds(flp_problem_normalize(&flp_linear_logp_operator, &problem, &normal));
    assert_succeeds(flp_tuned_identify_decision(context, &flp_linear_logp_operator, &normal, &wanted, &record.identity));
    snprintf(record.tuning, sizeof(record.tuning), "%s", tuning);
    return record;
}

/* Publishes it, and makes the plan of a context that reads it. */
static void plan_with(const flp_record *record)
{
    assert_succeeds(flp_record_files_publish(root, record));
    make_context(0);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
}

static void forget_records(void)
{
    fake_directory_remove(root);
    root = fake_directory_make();
}

static const char *tile_variant(void)
{
    return plan->kernels[FLP_ROLE_TILE]->manifest.variant;
}

static const char here[] = "linear_logp:bf16:n4096:d2048:v131072";

static void a_plan_without_records_is_the_generators_and_is_noted(void **state)
{
    flp_text lines = { 0 };

    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_string_equal("", flp_plan_tuning(plan));
    assert_contains(flp_plan_describe(plan), "\ntuning: default (no record)\n");
    assert_contains(tile_variant(), ".c1.p4.");
    assert_succeeds(flp_untuned_read(root, &lines));
    assert_string_equal("sm_90a linear_logp:bf16:n4096:d2048:v131072\n", lines.data);
    flp_text_free(&lines);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(NULL));
    assert_string_equal("", flp_plan_tuning(NULL));
}

static void an_exact_record_is_taken_for_its_bucket_of_rows(void **state)
{
    const flp_record record = record_of(here, "tile.cluster=1,tile.group=8,tile.stages=3", 0.98);

    (void)state;
    plan_with(&record);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    assert_string_equal("tile.cluster=1,tile.group=8,tile.stages=3", flp_plan_tuning(plan));
    assert_contains(flp_plan_describe(plan), "tuning: tile.cluster=1,tile.group=8,tile.stages=3 (exact, a record of ");
    assert_contains(tile_variant(), ".bm128.wg128.bv168.s132.c1.p3.");
    assert_int_equal(8, flp_linear_logp_plan_shape((flp_linear_logp_plan *)(void *)plan, 3000).group);
    assert_int_equal(1, flp_linear_logp_plan_shape((flp_linear_logp_plan *)(void *)plan, 100).group);
}

static void the_bits_identity_stays(void **state)
{
    const flp_record record = record_of(here, "tile.cluster=1", 0.98);
    char before[512];

    (void)state;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    snprintf(before, sizeof(before), "%s", flp_plan_numerics(plan));
    plan_with(&record);
    assert_string_equal(before, flp_plan_numerics(plan));
}

static void a_record_of_another_machine_is_nearby(void **state)
{
    flp_record record = record_of(here, "tile.cluster=1", 0.98);

    (void)state;
    snprintf(record.environment.driver, sizeof(record.environment.driver), "999");
    plan_with(&record);
    assert_int_equal(FLP_TUNED_NEARBY, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".c1.");
    assert_contains(flp_plan_describe(plan), "tuning: tile.cluster=1 (nearby, a record of ");
    assert_contains(flp_plan_describe(plan), " on Fake GPU 0: its driver is 999, here cuda 13.0)\n");
}

static void other_templates_arithmetic_or_problems_do_not_count(void **state)
{
    flp_record record = record_of(here, "tile.cluster=1", 0.98);

    (void)state;
    record.identity.templates[0] = record.identity.templates[0] == '0' ? '1' : '0';
    plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_describe(plan),
                    "tuning: default (no record that counts: one of 2026-11-22 on Fake GPU 0 is there, but the templates of its kernels "
                    "have changed since)\n");
    record = record_of(here, "tile.cluster=1", 0.98);
    record.identity.numerics[0] = 'L';
    forget_records();
    plan_with(&record);
    assert_contains(flp_plan_describe(plan), "is there, but the arithmetic of its kernels has changed since)\n");
    record = record_of("linear_logp:bf16:n4096:d2048:v131072:entropy", "tile.cluster=1", 0.98);
    plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
}

static void what_a_tuning_changes_is_what_it_was_measured_beside(void **state)
{
    const flp_record of_default = record_of(here, "", 1);
    flp_record record = record_of(here, "tile.stages=3", 0.98);

    (void)state;
    assert_string_equal(of_default.identity.selection, record.identity.selection);
    assert_string_not_equal(record_of("linear_logp:bf16:n4096:d4096:v131072", "", 1).identity.selection, record.identity.selection);
    record.identity.selection[0] = record.identity.selection[0] == '0' ? '1' : '0';
    plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_describe(plan), "is there, but the kernels that are taken without a tuning have changed since)\n");
}

/* Warpgroups of 64 rows are another template. */
static void the_templates_are_those_of_the_tuned_kernels(void **state)
{
    const flp_record of_default = record_of(here, "", 1);
    flp_record record = record_of(here, "tile.bm=64,tile.wg=64", 0.98);

    (void)state;
    assert_string_not_equal(of_default.identity.templates, record.identity.templates);
    plan_with(&record);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    memcpy(record.identity.templates, of_default.identity.templates, sizeof(record.identity.templates));
    forget_records();
    plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_describe(plan), "the templates of its kernels have changed since");
}

/* Other templates are another name, and the one of before would count as well. */
static void a_new_record_takes_the_place_of_those_of_other_kernels(void **state)
{
    const flp_wanted_kernels wanted = { here, 90, "sm_90a", "" };
    const flp_record old = record_of(here, "tile.bm=64,tile.wg=64", 0.98), new = record_of(here, "tile.cluster=1", 0.97);
    flp_record stale = record_of(here, "tile.stages=3", 0.98), elsewhere = old;
    flp_record_files files = { 0 };

    (void)state;
    stale.identity.templates[0] = stale.identity.templates[0] == '0' ? '1' : '0';
    snprintf(elsewhere.environment.driver, sizeof(elsewhere.environment.driver), "999");
    assert_succeeds(flp_record_files_publish(root, &old));
    assert_succeeds(flp_record_files_publish(root, &stale));
    plan_with(&elsewhere);
    assert_contains(tile_variant(), ".bm64.");
    assert_succeeds(flp_tuned_publish(context, context->records, &wanted, &new));
    assert_succeeds(flp_record_files_read(root, &files));
    assert_int_equal(3, files.count); /* it, the stale one of another library, and another machine's */
    flp_record_files_free(&files);
    flp_plan_destroy(plan);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_string_equal("tile.cluster=1", flp_plan_tuning(plan));
}

/* Whatever their names: the system's has other templates, and so another name. */
static void the_user_s_record_goes_before_the_system_s(void **state)
{
    char system[512], user[512];
    const flp_record one = record_of(here, "tile.bm=64,tile.wg=64", 0.98), other = record_of(here, "tile.cluster=1", 0.98);

    (void)state;
    for (int i = 0; i < 2; i++) {
        flp_context_options options = { .cache_directory = "" };

        snprintf(user, sizeof(user), "%s/user%d", root, i);
        snprintf(system, sizeof(system), "%s/system%d", root, i);
        options.records_directory = user;
        options.system_records_directories = system;
        assert_succeeds(flp_record_files_publish(user, i ? &one : &other));
        assert_succeeds(flp_record_files_publish(system, i ? &other : &one));
        flp_plan_destroy(plan);
        plan = NULL;
        flp_context_destroy(context);
        assert_succeeds(flp_context_create(&options, &context));
        assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
        assert_string_equal(i ? one.tuning : other.tuning, flp_plan_tuning(plan));
    }
}

/* One that changes bits here is passed over for one that does not, and nothing is to be said of it. */
static void the_nearest_shape_that_keeps_the_bits_is_carried_over(void **state)
{
    const flp_record other_bits = record_of("linear_logp:bf16:n8192:d2048:v131072", "tile.bv=128", 0.9);
    const flp_record same_bits = record_of("linear_logp:bf16:n16384:d2048:v131072", "tile.stages=3", 0.9);

    (void)state;
    assert_succeeds(flp_record_files_publish(root, &other_bits));
    plan_with(&same_bits);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".bv168.");
    assert_contains(tile_variant(), ".p3.");
    assert_null(strstr(fake_call_log(), "left out"));
}

static void the_nearest_shape_s_record_is_carried_over(void **state)
{
    const flp_record far = record_of("linear_logp:bf16:n128:d512:v32768", "tile.stages=2", 0.5);
    flp_record near = record_of("linear_logp:bf16:n8192:d2048:v131072", "tile.cluster=1", 0.95);

    (void)state;
    assert_succeeds(flp_record_files_publish(root, &far));
    plan_with(&near);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(plan));
    assert_string_equal("tile.cluster=1", flp_plan_tuning(plan));
    assert_contains(flp_plan_describe(plan), "(model, from a record of linear_logp:bf16:n8192:d2048:v131072)");
    /* A gain that is less than what shapes differ by is none. */
    near.ratio = near.ratio_low = near.ratio_high = 0.995;
    plan_with(&near);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(plan));
    assert_string_equal("", flp_plan_tuning(plan));
}

/* Another driver or NVRTC says less than the shape does; another GPU has other memory, and nothing of it is carried over. */
static void what_is_carried_over_is_of_such_a_gpu(void **state)
{
    static const char near[] = "linear_logp:bf16:n8192:d2048:v131072";
    flp_record old_driver = record_of(near, "tile.cluster=1", 0.95), power = record_of(near, "tile.stages=3", 0.9);
    const flp_record same = record_of(near, "tile.stages=2", 0.9), farther = record_of("linear_logp:bf16:n16384:d2048:v131072", "tile.stages=3", 0.9);

    (void)state;
    power.environment.power_limit_w = 1234;
    plan_with(&power);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    snprintf(old_driver.environment.driver, sizeof(old_driver.environment.driver), "999");
    assert_succeeds(flp_record_files_publish(root, &farther));
    plan_with(&old_driver);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(plan));
    assert_string_equal("tile.cluster=1", flp_plan_tuning(plan));
    assert_contains(flp_plan_describe(plan), "(model, from a record of linear_logp:bf16:n8192:d2048:v131072: its driver is 999, here cuda 13.0)");
    plan_with(&same);
    assert_string_equal("tile.stages=2", flp_plan_tuning(plan));
    assert_contains(flp_plan_describe(plan), "(model, from a record of linear_logp:bf16:n8192:d2048:v131072)");
}

/* A step into a main gradient, on a GPU whose memory is an H100's. */
static const flp_linear_cross_entropy_problem step = { .backward = { .forward = { .dtype = FLP_BF16, .rows = 8192, .hidden = 4096, .vocab = 128256 },
                                                                     .grad_hidden = FLP_BF16,
                                                                     .grad_weight = FLP_F32,
                                                                     .accumulate = FLP_ACCUMULATE_WEIGHT } };
static const char step_text[] = "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight";
static const char step_kernels[] = "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight:saved_exp";

static void make_memory_slow(void)
{
    fake_driver.clock_khz = 1980000;
    fake_driver.memory_clock_khz = 2619000;
    fake_driver.memory_bits = 5120;
}

static const char *plan_step(void)
{
    flp_plan_destroy(plan);
    plan = NULL;
    assert_succeeds(flp_linear_cross_entropy_plan_create(context, &step, &plan));
    return plan->kernels[FLP_ROLE_WEIGHT_PRODUCT]->manifest.variant;
}

static flp_record record_of_step(const char *tuning)
{
    flp_record record = record_of(step_kernels, tuning, 0.9);

    snprintf(record.identity.problem, sizeof(record.identity.problem), "%s", step_text);
    return record;
}

static void a_gpu_with_slow_memory_is_advised(void **state)
{
    flp_text lines = { 0 };

    (void)state;
    assert_contains(plan_step(), ".wg128.bv128.");
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    make_memory_slow();
    assert_contains(plan_step(), ".bm128.bv256.c2.p4.");
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_tuning(plan), "weight_product.bv=256,weight_product.stages=4,weight_product.wg=64");
    assert_contains(flp_plan_describe(plan), "weight_product.wg=64 (model, of memory with 3352 GB/s)\n");
    assert_succeeds(flp_untuned_read(root, &lines));
    assert_contains(lines.data, step_text); /* which is to be tuned all the same */
    flp_text_free(&lines);
    fake_driver.memory_clock_khz = 3201000; /* an H200's */
    fake_driver.memory_bits = 6144;
    assert_contains(plan_step(), ".wg128.bv128.");
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
}

static void what_was_measured_goes_before_what_is_advised(void **state)
{
    flp_record record, stale;

    (void)state;
    make_memory_slow();
    stale = record_of_step("weight_product.stages=6");
    stale.identity.templates[0] = stale.identity.templates[0] == '0' ? '1' : '0';
    assert_succeeds(flp_record_files_publish(root, &stale));
    make_context(0);
    assert_contains(plan_step(), ".bm128.bv256.c2.p4.");
    record = record_of_step("weight_product.stages=6");
    assert_succeeds(flp_record_files_publish(root, &record));
    make_context(0);
    assert_contains(plan_step(), ".wg128.bv128.c2.p6.");
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    forget_records();
    record = record_of_step("");
    snprintf(record.identity.problem, sizeof(record.identity.problem), "linear_cross_entropy:bf16:n8192:d2048:v128256:gh_bf16:gw_f32:acc_weight");
    assert_succeeds(flp_record_files_publish(root, &record));
    make_context(0);
    assert_contains(plan_step(), ".wg128.bv128.c2.p5."); /* a shape nearby does best with what is selected */
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
}

static void a_replaying_context_is_not_advised(void **state)
{
    flp_record stale;

    (void)state;
    make_memory_slow();
    make_context(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_cross_entropy_plan_create(context, &step, &plan), "and the context has FLP_CONTEXT_REPLAY");
    stale = record_of_step("weight_product.stages=6");
    stale.identity.templates[0] = stale.identity.templates[0] == '0' ? '1' : '0';
    assert_succeeds(flp_record_files_publish(root, &stale));
    make_context(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_cross_entropy_plan_create(context, &step, &plan), "the templates of its kernels have changed since");
    plan = NULL;
}

static void shapes_too_far_away_say_nothing(void **state)
{
    const flp_record far = record_of("linear_logp:bf16:n64:d512:v32768", "tile.stages=3", 0.5);

    (void)state;
    plan_with(&far);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
}

static void a_tuning_that_is_none_leaves_the_default(void **state)
{
    static const char *const wrong[] = { "tile.bm=96", "tile.cluster=1,tile.bm=64", "tile.stages=8", "rows.w=8", "nonsense" };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const flp_record record = record_of(here, wrong[i], 0.9);

        if (flp_record_files_publish(root, &record) != FLP_OK) /* no such record can be written */
            continue;
        make_context(0);
        assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
        assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
        assert_string_equal("", flp_plan_tuning(plan));
        assert_contains(tile_variant(), ".c1.p4.");
    }
}

/* As in an image that was prebuilt without the records of its machine. */
static void without_a_compiler_a_record_whose_kernels_are_not_there_is_left_out(void **state)
{
    const flp_record record = record_of(here, "tile.cluster=1,tile.stages=3", 0.98);
    char kernels[512];
    flp_context_options options = { .cache_directory = kernels, .system_cache_directories = "", .records_directory = "", .system_records_directories = "" };
    flp_context *other;

    (void)state;
    snprintf(kernels, sizeof(kernels), "%s/kernels", root);
    assert_succeeds(flp_context_create(&options, &other));
    assert_succeeds(flp_linear_logp_plan_create(other, &problem, &plan));
    flp_plan_destroy(plan);
    flp_context_destroy(other);
    assert_succeeds(flp_record_files_publish(root, &record));
    options.records_directory = root;
    options.flags = FLP_CONTEXT_NO_COMPILE;
    assert_succeeds(flp_context_create(&options, &other));
    assert_succeeds(flp_linear_logp_plan_create(other, &problem, &plan));
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".c1.p4.");
    assert_contains(fake_call_log(), "the kernels of its tuning, tile.cluster=1,tile.stages=3, are in no cache");
    assert_contains(flp_plan_describe(plan), "tuning: default (the kernels of its tuning are in no cache and cannot be compiled)\n");
    flp_plan_destroy(plan);
    plan = NULL;
    flp_context_destroy(other);
    options.flags |= FLP_CONTEXT_REPLAY;
    assert_succeeds(flp_context_create(&options, &other));
    assert_fails(FLP_NO_NVRTC, flp_linear_logp_plan_create(other, &problem, &plan), ".c1.p3.");
    flp_context_destroy(other);
}

static void prebuild(void *data, const char *variant)
{
    int compiled;

    assert_succeeds(flp_kernel_store_prebuild(((flp_context *)data)->store, variant, &compiled, NULL));
}

/* Prebuilds what fusedlogp-gen does with these records, and plans without a compiler. */
static void plan_prebuilt(unsigned flags)
{
    static int count;
    char kernels[512];
    flp_context_options options = {
        .cache_directory = kernels, .system_cache_directories = "", .flags = flags, .records_directory = root, .system_records_directories = ""
    };

    snprintf(kernels, sizeof(kernels), "%s/kernels%d", root, count++); /* nothing of an earlier one */
    flp_plan_destroy(plan);
    plan = NULL;
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&options, &context));
    problem.rows = 4096;
    fake_driver.devices = 0;
    assert_succeeds(flp_plan_visit_kernels(context, &flp_linear_logp_operator, &problem, 90, prebuild, context));
    fake_driver.devices = 1;
    flp_context_destroy(context);
    options.flags |= FLP_CONTEXT_NO_COMPILE;
    assert_succeeds(flp_context_create(&options, &context));
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
}

static void prebuilds_have_the_kernels_of_any_machine_s_records(void **state)
{
    flp_record record = record_of(here, "tile.cluster=1,tile.stages=3", 0.98);

    (void)state;
    assert_succeeds(flp_record_files_publish(root, &record));
    plan_prebuilt(0);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".c1.p3.");
    snprintf(record.environment.driver, sizeof(record.environment.driver), "999");
    snprintf(record.tuning, sizeof(record.tuning), "tile.stages=2");
    assert_succeeds(flp_record_files_publish(root, &record));
    plan_prebuilt(0);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan)); /* this machine's stays the one that is taken */
    assert_contains(tile_variant(), ".c1.p3.");
}

static void prebuilds_have_the_kernels_of_the_nearest_shape_s_record(void **state)
{
    const flp_record near = record_of("linear_logp:bf16:n8192:d2048:v131072", "tile.stages=3", 0.95);

    (void)state;
    assert_succeeds(flp_record_files_publish(root, &near));
    plan_prebuilt(0);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".p3.");
}

/* Where they were not prebuilt, the kernels of no tuning do. */
static void prebuilds_have_the_kernels_that_are_advised(void **state)
{
    char kernels[512];
    flp_context_options options = { .cache_directory = kernels, .system_cache_directories = "", .records_directory = "", .system_records_directories = "" };

    (void)state;
    for (int advised = 0; advised < 2; advised++) {
        snprintf(kernels, sizeof(kernels), "%s/kernels%d", root, advised);
        options.flags = 0;
        flp_context_destroy(context);
        assert_succeeds(flp_context_create(&options, &context));
        if (advised) {
            fake_driver.devices = 0;
            assert_succeeds(flp_plan_visit_kernels(context, &flp_linear_cross_entropy_operator, &step, 90, prebuild, context));
            fake_driver.devices = 1;
        } else {
            plan_step();
            flp_plan_destroy(plan);
            plan = NULL;
        }
        make_memory_slow();
        flp_context_destroy(context);
        options.flags = FLP_CONTEXT_NO_COMPILE;
        assert_succeeds(flp_context_create(&options, &context));
        assert_contains(plan_step(), advised ? ".bm128.bv256.c2.p4." : ".wg128.bv128.");
        assert_int_equal(advised ? FLP_TUNED_MODEL : FLP_TUNED_NOT, flp_plan_tuned_by(plan));
        flp_plan_destroy(plan);
        plan = NULL;
    }
}

static void prebuilds_have_other_bits_where_that_is_asked_for(void **state)
{
    const flp_record decision = decision_of("tile.bv=128"), record = record_of(here, "tile.bv=128,tile.stages=3", 0.9);

    (void)state;
    assert_succeeds(flp_record_files_publish(root, &decision));
    plan_prebuilt(0);
    assert_contains(tile_variant(), ".bv168.");
    plan_prebuilt(FLP_CONTEXT_TUNED_BITS);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".bv128.");
    assert_succeeds(flp_record_files_publish(root, &record));
    plan_prebuilt(FLP_CONTEXT_TUNED_BITS);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".bv128.");
    assert_contains(tile_variant(), ".p3.");
}

/* What was prebuilt without the record of its rows: the bits stay what was decided. */
static void without_its_kernels_the_bits_are_those_that_were_decided(void **state)
{
    const flp_record decision = decision_of("tile.bv=128"), record = record_of(here, "tile.bv=128,tile.stages=3", 0.9);
    char kernels[512];
    flp_context_options options = {
        .cache_directory = kernels, .system_cache_directories = "", .flags = FLP_CONTEXT_TUNED_BITS, .records_directory = root, .system_records_directories = ""
    };
    flp_context *other;

    (void)state;
    snprintf(kernels, sizeof(kernels), "%s/kernels", root);
    assert_succeeds(flp_record_files_publish(root, &decision));
    assert_succeeds(flp_context_create(&options, &other));
    assert_succeeds(flp_linear_logp_plan_create(other, &problem, &plan));
    flp_plan_destroy(plan);
    flp_context_destroy(other);
    assert_succeeds(flp_record_files_publish(root, &record));
    options.flags |= FLP_CONTEXT_NO_COMPILE;
    assert_succeeds(flp_context_create(&options, &other));
    assert_succeeds(flp_linear_logp_plan_create(other, &problem, &plan));
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_string_equal("tile.bv=128", flp_plan_tuning(plan));
    assert_contains(tile_variant(), ".bv128.");
    flp_plan_destroy(plan);
    plan = NULL;
    flp_context_destroy(other);
}

/* Makes a plan of so many rows in a context that takes other bits. */
static const char *numerics_of(int64_t rows, flp_tuned_by wanted)
{
    flp_plan_destroy(plan);
    plan = NULL;
    problem.rows = rows;
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_int_equal(wanted, flp_plan_tuned_by(plan));
    return flp_plan_numerics(plan);
}

static void a_tuning_of_one_number_of_rows_changes_no_bits(void **state)
{
    const flp_record record = record_of(here, "tile.bv=128", 0.9);

    (void)state;
    plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(tile_variant(), ".bv168.");
    assert_contains(flp_plan_describe(plan), "is there, but its tuning changes a row's bits, and the context has no FLP_CONTEXT_TUNED_BITS)\n");
    make_context(FLP_CONTEXT_TUNED_BITS);
    numerics_of(3000, FLP_TUNED_NOT);
    assert_contains(tile_variant(), ".bv168.");
    assert_contains(flp_plan_describe(plan), "its tuning gives a row other bits than the record of all numbers of rows decides)\n");
    assert_null(strstr(fake_call_log(), "left out"));
}

static void a_record_of_all_rows_decides_on_their_bits(void **state)
{
    const flp_record decision = decision_of("tile.bv=128"), of_rows = record_of(here, "tile.bv=128,tile.stages=3", 0.9);
    const flp_record other_bits = record_of("linear_logp:bf16:n64:d2048:v131072", "tile.stages=3", 0.9);
    char before[512], few[512];

    (void)state;
    assert_succeeds(flp_record_files_publish(root, &of_rows));
    assert_succeeds(flp_record_files_publish(root, &other_bits));
    plan_with(&decision);
    assert_contains(tile_variant(), ".bv168."); /* nobody asked for it */
    snprintf(before, sizeof(before), "%s", flp_plan_numerics(plan));
    make_context(FLP_CONTEXT_TUNED_BITS);
    snprintf(few, sizeof(few), "%s", numerics_of(10, FLP_TUNED_MODEL));
    assert_string_equal("tile.bv=128", flp_plan_tuning(plan));
    assert_contains(flp_plan_describe(plan), "tuning: tile.bv=128 (model, from a record of linear_logp:bf16:d2048:v131072)\n");
    assert_string_not_equal(before, few);
    assert_string_equal(few, numerics_of(3000, FLP_TUNED_EXACT));
    assert_string_equal("tile.bv=128,tile.stages=3", flp_plan_tuning(plan));
    assert_string_equal(few, numerics_of(100000, FLP_TUNED_MODEL));
}

/* In place of the one before, whatever they say. */
static void there_is_one_decision(void **state)
{
    const flp_record first = decision_of("tile.bv=128"), second = decision_of("tile.bv=192,tile.s=66"), third = decision_of("");

    (void)state;
    assert_succeeds(flp_record_files_publish(root, &first));
    assert_succeeds(flp_record_files_publish(root, &second));
    make_context(FLP_CONTEXT_TUNED_BITS);
    assert_contains(numerics_of(3000, FLP_TUNED_MODEL), ".bv192.s66.");
    assert_succeeds(flp_record_files_publish(root, &third));
    make_context(FLP_CONTEXT_TUNED_BITS);
    assert_contains(numerics_of(3000, FLP_TUNED_NOT), ".bv168.");
}

static void a_problem_s_text_goes_without_rows_and_back(void **state)
{
    char text[FLP_PROBLEM_TEXT_BYTES];

    (void)state;
    assert_true(flp_tuned_without_rows("weighted_sum:bf16:n64:d4096", text));
    assert_string_equal("weighted_sum:bf16:d4096", text);
    assert_true(flp_tuned_with_rows("weighted_sum:bf16:d4096", text));
    assert_string_equal("weighted_sum:bf16:n4096:d4096", text);
    assert_false(flp_tuned_with_rows("weighted_sum:bf16:n64:d4096", text));
    assert_false(flp_tuned_without_rows("weighted_sum:bf16:d4096", text));
    assert_false(flp_tuned_without_rows("model", text));
    assert_false(flp_tuned_with_rows("model", text));
}

static void a_replaying_context_wants_exact_records(void **state)
{
    const flp_record record = record_of(here, "tile.cluster=1", 0.98);
    flp_record other = record;

    (void)state;
    make_context(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(context, &problem, &plan), "no exact record of a tuning, and the context has FLP_CONTEXT_REPLAY");
    other.identity.templates[0] = other.identity.templates[0] == '0' ? '1' : '0';
    assert_succeeds(flp_record_files_publish(root, &other));
    make_context(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(context, &problem, &plan),
                 "FLP_CONTEXT_REPLAY: no record that counts: one of 2026-11-22 on Fake GPU 0 is there, but the templates of its kernels have changed since");
    other = record;
    other.environment.power_limit_w = 1234;
    assert_succeeds(flp_record_files_publish(root, &other));
    make_context(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(context, &problem, &plan),
                 "FLP_CONTEXT_REPLAY: nearby, a record of 2026-11-22 on Fake GPU 0: its power limit in W is 1234, here unknown");
    assert_succeeds(flp_record_files_publish(root, &record));
    make_context(FLP_CONTEXT_REPLAY);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    problem.backend = FLP_BACKEND_CPU;
    flp_plan_destroy(plan);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan)); /* which has none */
}

static void a_tuning_that_is_given_is_taken_or_refused(void **state)
{
    (void)state;
    assert_succeeds(flp_create_plan_tuned(context, &flp_linear_logp_operator, &problem, "tile.bm=64,tile.wg=64", &plan));
    assert_contains(tile_variant(), ".bm64.");
    flp_plan_destroy(plan);
    assert_fails(FLP_NO_VARIANT, flp_create_plan_tuned(context, &flp_linear_logp_operator, &problem, "tile.bm=96", &plan),
                 "bm = 96: with wg = 128 a multiple of it");
    problem.backend = FLP_BACKEND_CPU;
    assert_fails(FLP_NO_VARIANT, flp_create_plan_tuned(context, &flp_linear_logp_operator, &problem, "tile.bm=64", &plan),
                 "the CPU path has no kernels to tune");
    plan = NULL;
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(a_plan_without_records_is_the_generators_and_is_noted),
        test_of(an_exact_record_is_taken_for_its_bucket_of_rows),
        test_of(the_bits_identity_stays),
        test_of(a_record_of_another_machine_is_nearby),
        test_of(other_templates_arithmetic_or_problems_do_not_count),
        test_of(what_a_tuning_changes_is_what_it_was_measured_beside),
        test_of(the_templates_are_those_of_the_tuned_kernels),
        test_of(a_new_record_takes_the_place_of_those_of_other_kernels),
        test_of(the_user_s_record_goes_before_the_system_s),
        test_of(the_nearest_shape_s_record_is_carried_over),
        test_of(the_nearest_shape_that_keeps_the_bits_is_carried_over),
        test_of(what_is_carried_over_is_of_such_a_gpu),
        test_of(a_gpu_with_slow_memory_is_advised),
        test_of(what_was_measured_goes_before_what_is_advised),
        test_of(a_replaying_context_is_not_advised),
        test_of(prebuilds_have_the_kernels_that_are_advised),
        test_of(shapes_too_far_away_say_nothing),
        test_of(a_tuning_that_is_none_leaves_the_default),
        test_of(without_a_compiler_a_record_whose_kernels_are_not_there_is_left_out),
        test_of(prebuilds_have_the_kernels_of_any_machine_s_records),
        test_of(prebuilds_have_the_kernels_of_the_nearest_shape_s_record),
        test_of(prebuilds_have_other_bits_where_that_is_asked_for),
        test_of(without_its_kernels_the_bits_are_those_that_were_decided),
        test_of(a_tuning_of_one_number_of_rows_changes_no_bits),
        test_of(a_record_of_all_rows_decides_on_their_bits),
        test_of(there_is_one_decision),
        test_of(a_problem_s_text_goes_without_rows_and_back),
        test_of(a_replaying_context_wants_exact_records),
        test_of(a_tuning_that_is_given_is_taken_or_refused),
    };

    return cmocka_run_group_tests_name("tuned", tests, NULL, NULL);
}
