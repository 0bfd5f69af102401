/* Calibrations as records: made of samples, found for the device that they are of, and given to the model with the device's facts. */
#include "core/calibration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "fake_call.h"
#include "assertions.h"
#include "fake_directory.h"
#include "fake_driver.h"

static flp_context *context;
static flp_device device;
static const char *root;

static void make_context(void)
{
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&(flp_context_options){ .cache_directory = "", .records_directory = root, .system_records_directories = "" }, &context));
}

static int start(void **state)
{
    (void)state;
    flp_context_destroy(fake_call_start(0));
    context = NULL;
    root = fake_directory_make();
    make_context();
    assert_succeeds(flp_device_current(&device));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_context_destroy(context);
    fake_directory_remove(root);
    return 0;
}

static void the_attributes_become_facts(void **state)
{
    char text[FLP_RECORD_TUNING_BYTES];
    flp_model_facts facts;

    (void)state;
    fake_driver.clock_khz = 1755000;
    fake_driver.memory_clock_khz = 2619000;
    fake_driver.memory_bits = 5120;
    fake_driver.l2_bytes = 50 << 20;
    flp_calibration_facts(context, &device, &facts, text);
    assert_int_equal(device.facts.multiprocessors, facts.multiprocessors);
    assert_true(facts.clock_hz == 1.755e9);
    assert_true(facts.memory == 2 * 2619e6 * 640);
    assert_int_equal(50 << 20, facts.l2_bytes);
    assert_string_equal("", facts.calibration);
}

/* Every candidate of some problems takes `factor` of what the model says. */
static void measure(double factor, flp_text *samples)
{
    static const char *const problems[] = { "linear_logp:bf16:n4096:d2048:v131072", "linear_logp:bf16:n64:d4096:v128256", "weighted_sum:bf16:n8192:d4096" };
    flp_model_facts facts;
    char text[FLP_RECORD_TUNING_BYTES];

    flp_calibration_facts(context, &device, &facts, text);
    facts.calibration = "";
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        const flp_wanted_kernels wanted = { problems[i], 90, "auto", "" };
        char *lines, *rest = NULL;

        assert_succeeds(flp_generator_candidates(flp_kernel_store_generator(context->store), &wanted, &facts, 0, 12, &lines));
        for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            long long picoseconds;
            char role[64] = "", tuning[512] = "";

            assert_true(sscanf(line, "%lld %63s %511s", &picoseconds, role, tuning) >= 2);
            flp_text_append(samples, "%lld auto %s %s\n", (long long)((double)picoseconds * factor), problems[i], tuning);
        }
        free(lines);
    }
}

static void what_was_made_is_found_and_orders_candidates(void **state)
{
    const flp_wanted_kernels wanted = { "weighted_sum:bf16:n4096:d2048", 90, "auto", "" };
    char text[FLP_RECORD_TUNING_BYTES], *before, *after;
    flp_text samples = { 0 };
    flp_model_facts facts;
    flp_record record;

    (void)state;
    measure(2, &samples);
    assert_succeeds(flp_calibration_make(context, &device, samples.data, 0.1, &record));
    flp_text_free(&samples);
    assert_true(record.rounds >= 20);
    assert_true(record.ratio < 1.02 && record.ratio_high > 1.9);
    assert_succeeds(flp_records_publish(context->records, &record));
    make_context(); /* it lies on the disk */
    flp_calibration_facts(context, &device, &facts, text);
    assert_string_equal(record.tuning, facts.calibration);
    assert_succeeds(flp_generator_candidates(flp_kernel_store_generator(context->store), &wanted, &facts, 0, 3, &after));
    facts.calibration = "";
    assert_succeeds(flp_generator_candidates(flp_kernel_store_generator(context->store), &wanted, &facts, 0, 3, &before));
    assert_true((double)strtoll(after, NULL, 10) > 1.5 * (double)strtoll(before, NULL, 10));
    free(before);
    free(after);
}

static void another_device_s_is_not_taken(void **state)
{
    char text[FLP_RECORD_TUNING_BYTES];
    flp_text samples = { 0 };
    flp_model_facts facts;
    flp_record record;

    (void)state;
    measure(2, &samples);
    assert_succeeds(flp_calibration_make(context, &device, samples.data, 0.1, &record));
    flp_text_free(&samples);
    snprintf(record.environment.device, sizeof(record.environment.device), "Another GPU");
    assert_succeeds(flp_records_publish(context->records, &record));
    flp_calibration_facts(context, &device, &facts, text);
    assert_string_equal("", facts.calibration);
}

static void too_few_times_are_none(void **state)
{
    flp_record record;

    (void)state;
    assert_fails(FLP_NO_VARIANT, flp_calibration_make(context, &device, "1000 auto weighted_sum:bf16:n64:d1024 \n", 0.1, &record),
                 "1 time measured, wanted 12 or more");
    assert_fails(FLP_NO_VARIANT, flp_calibration_make(context, &device, "nonsense", 0.1, &record), "nothing was measured that the model knows");
}

static void a_damaged_one_is_a_refusal_that_names_it(void **state)
{
    const flp_model_facts facts = { .calibration = "hopper.wings=2" };
    char *lines;

    (void)state;
    assert_fails(FLP_NO_VARIANT,
                 flp_generator_candidates(flp_kernel_store_generator(context->store), &(flp_wanted_kernels){ "weighted_sum:bf16:n64:d1024", 90, "auto", "" },
                                          &facts, 0, 3, &lines),
                 "calibration \"hopper.wings=2\": got \"hopper.wings=2\", wanted kernels.coefficient=millionths");
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(the_attributes_become_facts), test_of(what_was_made_is_found_and_orders_candidates), test_of(another_device_s_is_not_taken),
        test_of(too_few_times_are_none),      test_of(a_damaged_one_is_a_refusal_that_names_it),
    };

    return cmocka_run_group_tests_name("calibration", tests, NULL, NULL);
}
