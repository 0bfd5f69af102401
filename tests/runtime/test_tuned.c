/* Plans and records: which tuning a plan takes, what it says of it, and that nothing in a record can fail a call. */
#include "core/tuned.h"

#include <stdio.h>
#include <string.h>

#include "core/plan.h"
#include "fake_call.h"
#include "operators/linear/linear_logp_plan.h"
#include "tune/untuned.h"
#include "tuned_plan.h"

static void a_plan_without_records_is_the_generators_and_is_noted(void **state)
{
    flp_text lines = { 0 };

    (void)state;
    tuned_make_plan();
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    assert_string_equal("", flp_plan_tuning(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "\ntuning: default (no record)\n");
    assert_contains(tuned_tile_variant(), ".c1.p4.");
    assert_succeeds(flp_untuned_read(tuned.records, &lines));
    assert_string_equal("sm_90a linear_logp:bf16:n4096:d2048:v131072\n", lines.data);
    flp_text_free(&lines);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(NULL));
    assert_string_equal("", flp_plan_tuning(NULL));
}

static void an_exact_record_is_taken_for_its_bucket_of_rows(void **state)
{
    const flp_record record = tuned_record_of(tuned_text, "tile.cluster=1,tile.group=8,tile.stages=3", 0.98);

    (void)state;
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(tuned.plan));
    assert_string_equal("tile.cluster=1,tile.group=8,tile.stages=3", flp_plan_tuning(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "tuning: tile.cluster=1,tile.group=8,tile.stages=3 (exact, a record of ");
    assert_contains(tuned_tile_variant(), ".bm128.wg128.bv168.s132.c1.p3.");
    assert_int_equal(8, flp_linear_logp_plan_shape((flp_linear_logp_plan *)(void *)tuned.plan, 3000).group);
    assert_int_equal(1, flp_linear_logp_plan_shape((flp_linear_logp_plan *)(void *)tuned.plan, 100).group);
}

static void the_bits_identity_stays(void **state)
{
    const flp_record record = tuned_record_of(tuned_text, "tile.cluster=1", 0.98);
    char before[512];

    (void)state;
    tuned_make_plan();
    snprintf(before, sizeof(before), "%s", flp_plan_numerics(tuned.plan));
    tuned_plan_with(&record);
    assert_string_equal(before, flp_plan_numerics(tuned.plan));
}

static void a_record_of_another_machine_is_nearby(void **state)
{
    flp_record record = tuned_record_of(tuned_text, "tile.cluster=1", 0.98);

    (void)state;
    snprintf(record.environment.driver, sizeof(record.environment.driver), "999");
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_NEARBY, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".c1.");
    assert_contains(flp_plan_describe(tuned.plan), "tuning: tile.cluster=1 (nearby, a record of ");
    assert_contains(flp_plan_describe(tuned.plan), " on Fake GPU 0: its driver is 999, here cuda 13.0)\n");
}

static void other_templates_arithmetic_or_problems_do_not_count(void **state)
{
    flp_record record = tuned_record_of(tuned_text, "tile.cluster=1", 0.98);

    (void)state;
    tuned_change_digest(record.identity.templates);
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan),
                    "tuning: default (no record that counts: one of 2026-11-22 on Fake GPU 0 is there, but the templates of its kernels "
                    "have changed since)\n");
    record = tuned_record_of(tuned_text, "tile.cluster=1", 0.98);
    record.identity.numerics[0] = 'L';
    tuned_forget_records();
    tuned_plan_with(&record);
    assert_contains(flp_plan_describe(tuned.plan), "is there, but the arithmetic of its kernels has changed since)\n");
    record = tuned_record_of("linear_logp:bf16:n4096:d2048:v131072:entropy", "tile.cluster=1", 0.98);
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
}

static void what_a_tuning_changes_is_what_it_was_measured_beside(void **state)
{
    const flp_record of_default = tuned_record_of(tuned_text, "", 1);
    flp_record record = tuned_record_of(tuned_text, "tile.stages=3", 0.98);

    (void)state;
    assert_string_equal(of_default.identity.selection, record.identity.selection);
    assert_string_not_equal(tuned_record_of("linear_logp:bf16:n4096:d4096:v131072", "", 1).identity.selection, record.identity.selection);
    tuned_change_digest(record.identity.selection);
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "is there, but the kernels that are taken without a tuning have changed since)\n");
}

/* Warpgroups of 64 rows are another template. */
static void the_templates_are_those_of_the_tuned_kernels(void **state)
{
    const flp_record of_default = tuned_record_of(tuned_text, "", 1);
    flp_record record = tuned_record_of(tuned_text, "tile.bm=64,tile.wg=64", 0.98);

    (void)state;
    assert_string_not_equal(of_default.identity.templates, record.identity.templates);
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(tuned.plan));
    memcpy(record.identity.templates, of_default.identity.templates, sizeof(record.identity.templates));
    tuned_forget_records();
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "the templates of its kernels have changed since");
}

/* Other templates are another name, and the one of before would count as well. */
static void a_new_record_takes_the_place_of_those_of_other_kernels(void **state)
{
    const flp_wanted_kernels wanted = { tuned_text, 90, "sm_90a", "" };
    const flp_record old = tuned_record_of(tuned_text, "tile.bm=64,tile.wg=64", 0.98), new = tuned_record_of(tuned_text, "tile.cluster=1", 0.97);
    flp_record stale = tuned_record_of(tuned_text, "tile.stages=3", 0.98), elsewhere = old;
    flp_record_files files = { 0 };

    (void)state;
    tuned_change_digest(stale.identity.templates);
    snprintf(elsewhere.environment.driver, sizeof(elsewhere.environment.driver), "999");
    tuned_publish(&old);
    tuned_publish(&stale);
    tuned_plan_with(&elsewhere);
    assert_contains(tuned_tile_variant(), ".bm64.");
    assert_succeeds(flp_tuned_publish(tuned.context, tuned.context->records, &wanted, &new));
    assert_succeeds(flp_record_files_read(tuned.records, &files));
    assert_int_equal(3, files.count); /* it, the stale one of another library, and another machine's */
    flp_record_files_free(&files);
    tuned_make_plan();
    assert_string_equal("tile.cluster=1", flp_plan_tuning(tuned.plan));
}

/* Whatever their names: the system's has other templates, and so another name. */
static void the_user_s_record_goes_before_the_system_s(void **state)
{
    char system[512], user[512];
    const flp_record one = tuned_record_of(tuned_text, "tile.bm=64,tile.wg=64", 0.98), other = tuned_record_of(tuned_text, "tile.cluster=1", 0.98);

    (void)state;
    for (int i = 0; i < 2; i++) {
        flp_context_options options = { .cache_directory = "" };

        snprintf(user, sizeof(user), "%s/user%d", tuned.records, i);
        snprintf(system, sizeof(system), "%s/system%d", tuned.records, i);
        options.records_directory = user;
        options.system_records_directories = system;
        assert_succeeds(flp_record_files_publish(user, i ? &one : &other));
        assert_succeeds(flp_record_files_publish(system, i ? &other : &one));
        tuned_open(&options);
        tuned_make_plan();
        assert_string_equal(i ? one.tuning : other.tuning, flp_plan_tuning(tuned.plan));
    }
}

static void the_nearest_shape_s_record_is_carried_over(void **state)
{
    const flp_record far = tuned_record_of("linear_logp:bf16:n128:d512:v32768", "tile.stages=2", 0.5);
    flp_record near = tuned_record_of("linear_logp:bf16:n8192:d2048:v131072", "tile.cluster=1", 0.95);

    (void)state;
    tuned_publish(&far);
    tuned_plan_with(&near);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(tuned.plan));
    assert_string_equal("tile.cluster=1", flp_plan_tuning(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "(model, from a record of linear_logp:bf16:n8192:d2048:v131072)");
    /* A gain that is less than what shapes differ by is none. */
    near.ratio = near.ratio_low = near.ratio_high = 0.995;
    tuned_plan_with(&near);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(tuned.plan));
    assert_string_equal("", flp_plan_tuning(tuned.plan));
}

/* One that changes bits here is passed over for one that does not, and nothing is to be said of it. */
static void the_nearest_shape_that_keeps_the_bits_is_carried_over(void **state)
{
    const flp_record other_bits = tuned_record_of("linear_logp:bf16:n8192:d2048:v131072", "tile.bv=128", 0.9);
    const flp_record same_bits = tuned_record_of("linear_logp:bf16:n16384:d2048:v131072", "tile.stages=3", 0.9);

    (void)state;
    tuned_publish(&other_bits);
    tuned_plan_with(&same_bits);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".bv168.");
    assert_contains(tuned_tile_variant(), ".p3.");
    assert_null(strstr(fake_call_log(), "left out"));
}

/* Another driver or NVRTC says less than the shape does; another GPU has other memory, and nothing of it is carried over. */
static void what_is_carried_over_is_of_such_a_gpu(void **state)
{
    static const char near[] = "linear_logp:bf16:n8192:d2048:v131072";
    flp_record old_driver = tuned_record_of(near, "tile.cluster=1", 0.95), power = tuned_record_of(near, "tile.stages=3", 0.9);
    const flp_record same = tuned_record_of(near, "tile.stages=2", 0.9),
                     farther = tuned_record_of("linear_logp:bf16:n16384:d2048:v131072", "tile.stages=3", 0.9);

    (void)state;
    power.environment.power_limit_w = 1234;
    tuned_plan_with(&power);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    snprintf(old_driver.environment.driver, sizeof(old_driver.environment.driver), "999");
    tuned_publish(&farther);
    tuned_plan_with(&old_driver);
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(tuned.plan));
    assert_string_equal("tile.cluster=1", flp_plan_tuning(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "(model, from a record of linear_logp:bf16:n8192:d2048:v131072: its driver is 999, here cuda 13.0)");
    tuned_plan_with(&same);
    assert_string_equal("tile.stages=2", flp_plan_tuning(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "(model, from a record of linear_logp:bf16:n8192:d2048:v131072)");
}

static void shapes_too_far_away_say_nothing(void **state)
{
    const flp_record far = tuned_record_of("linear_logp:bf16:n64:d512:v32768", "tile.stages=3", 0.5);

    (void)state;
    tuned_plan_with(&far);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
}

static void a_tuning_that_is_none_leaves_the_default(void **state)
{
    static const char *const wrong[] = { "tile.bm=96", "tile.cluster=1,tile.bm=64", "tile.stages=8", "rows.w=8", "nonsense" };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const flp_record record = tuned_record_of(tuned_text, wrong[i], 0.9);

        tuned_plan_with(&record);
        assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
        assert_string_equal("", flp_plan_tuning(tuned.plan));
        assert_contains(tuned_tile_variant(), ".c1.p4.");
    }
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
    const flp_record record = tuned_record_of(tuned_text, "tile.cluster=1", 0.98);
    flp_record other = record;

    (void)state;
    tuned_open_flags(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(tuned.context, &tuned.problem, &tuned.plan),
                 "no exact record of a tuning, and the context has FLP_CONTEXT_REPLAY");
    tuned_change_digest(other.identity.templates);
    tuned_publish(&other);
    tuned_open_flags(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(tuned.context, &tuned.problem, &tuned.plan),
                 "FLP_CONTEXT_REPLAY: no record that counts: one of 2026-11-22 on Fake GPU 0 is there, but the templates of its kernels have changed since");
    other = record;
    other.environment.power_limit_w = 1234;
    tuned_publish(&other);
    tuned_open_flags(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_plan_create(tuned.context, &tuned.problem, &tuned.plan),
                 "FLP_CONTEXT_REPLAY: nearby, a record of 2026-11-22 on Fake GPU 0: its power limit in W is 1234, here unknown");
    tuned_publish(&record);
    tuned_open_flags(FLP_CONTEXT_REPLAY);
    tuned_make_plan();
    tuned.problem.backend = FLP_BACKEND_CPU;
    tuned_make_plan(); /* which has none */
}

static void a_tuning_that_is_given_is_taken_or_refused(void **state)
{
    (void)state;
    assert_succeeds(flp_create_plan_tuned(tuned.context, &flp_linear_logp_operator, &tuned.problem, "tile.bm=64,tile.wg=64", &tuned.plan));
    assert_contains(tuned_tile_variant(), ".bm64.");
    flp_plan_destroy(tuned.plan);
    assert_fails(FLP_NO_VARIANT, flp_create_plan_tuned(tuned.context, &flp_linear_logp_operator, &tuned.problem, "tile.bm=96", &tuned.plan),
                 "bm = 96: with wg = 128 a multiple of it");
    tuned.problem.backend = FLP_BACKEND_CPU;
    assert_fails(FLP_NO_VARIANT, flp_create_plan_tuned(tuned.context, &flp_linear_logp_operator, &tuned.problem, "tile.bm=64", &tuned.plan),
                 "the CPU path has no kernels to tune");
    tuned.plan = NULL;
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, tuned_start, tuned_stop)

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
        test_of(shapes_too_far_away_say_nothing),
        test_of(a_tuning_that_is_none_leaves_the_default),
        test_of(a_problem_s_text_goes_without_rows_and_back),
        test_of(a_replaying_context_wants_exact_records),
        test_of(a_tuning_that_is_given_is_taken_or_refused),
    };

    return cmocka_run_group_tests_name("tuned", tests, NULL, NULL);
}
