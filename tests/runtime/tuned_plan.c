/* A context over a directory of records, and the plans that it makes. */
#include "tuned_plan.h"

#include <stdio.h>

#include "fake_call.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_plan.h"

tuned_plan_fixture tuned;

const char tuned_text[] = "linear_logp:bf16:n4096:d2048:v131072";

const flp_linear_cross_entropy_problem tuned_step = { .backward = { .forward = { .dtype = FLP_BF16, .rows = 8192, .hidden = 4096, .vocab = 128256 },
                                                                    .grad_hidden = FLP_BF16,
                                                                    .grad_weight = FLP_F32,
                                                                    .accumulate = FLP_ACCUMULATE_WEIGHT } };
const char tuned_step_text[] = "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight";

static void close_plan(void)
{
    flp_plan_destroy(tuned.plan);
    tuned.plan = NULL;
}

void tuned_open(const flp_context_options *options)
{
    close_plan();
    flp_context_destroy(tuned.context);
    tuned.context = NULL;
    assert_succeeds(flp_context_create(options, &tuned.context));
}

void tuned_open_flags(unsigned flags)
{
    const flp_context_options options = { .cache_directory = "", .flags = flags, .records_directory = tuned.records, .system_records_directories = "" };

    tuned_open(&options);
}

int tuned_start(void **state)
{
    (void)state;
    flp_context_destroy(fake_call_start(0)); /* a device is there */
    tuned = (tuned_plan_fixture){ .problem = { .dtype = FLP_BF16, .rows = 3000, .hidden = 2048, .vocab = 131072 }, .records = fake_directory_make() };
    tuned_open_flags(0);
    return 0;
}

int tuned_stop(void **state)
{
    (void)state;
    close_plan();
    flp_context_destroy(tuned.context);
    fake_directory_remove(tuned.records);
    return fake_driver.live_blocks || fake_driver.live_modules;
}

flp_record tuned_record_of(const char *text, const char *tuning, double ratio)
{
    flp_wanted_kernels wanted = { text, 90, "sm_90a", tuning };
    flp_record record = fake_record();
    flp_device device;

    if (flp_tuned_identify(tuned.context, &wanted, &record.identity) != FLP_OK) {
        wanted.tuning = "";
        assert_succeeds(flp_tuned_identify(tuned.context, &wanted, &record.identity));
    }
    assert_succeeds(flp_device_current(&device));
    flp_environment_describe(&device, &record.environment);
    snprintf(record.identity.problem, sizeof(record.identity.problem), "%s", text);
    snprintf(record.tuning, sizeof(record.tuning), "%s", tuning);
    record.ratio = record.ratio_low = record.ratio_high = ratio;
    return record;
}

flp_record tuned_decision_of(const char *tuning)
{
    const flp_wanted_kernels wanted = { "linear_logp:bf16:n3000:d2048:v131072", 90, "sm_90a", "" };
    flp_record record = tuned_record_of(tuned_text, "", 0.95);
    flp_problem_storage normal;

    assert_succeeds(flp_problem_normalize(&flp_linear_logp_operator, &tuned.problem, &normal));
    assert_succeeds(flp_tuned_identify_decision(tuned.context, &flp_linear_logp_operator, &normal, &wanted, &record.identity));
    snprintf(record.tuning, sizeof(record.tuning), "%s", tuning);
    return record;
}

void tuned_change_digest(char *digest)
{
    digest[0] = digest[0] == '0' ? '1' : '0';
}

void tuned_publish(const flp_record *record)
{
    assert_succeeds(flp_record_files_publish(tuned.records, record));
}

void tuned_forget_records(void)
{
    fake_directory_remove(tuned.records);
    tuned.records = fake_directory_make();
}

void tuned_make_plan(void)
{
    close_plan();
    assert_succeeds(flp_linear_logp_plan_create(tuned.context, &tuned.problem, &tuned.plan));
}

const char *tuned_make_step_plan(void)
{
    close_plan();
    assert_succeeds(flp_linear_cross_entropy_plan_create(tuned.context, &tuned_step, &tuned.plan));
    return tuned.plan->kernels[FLP_ROLE_WEIGHT_PRODUCT]->manifest.variant;
}

void tuned_plan_with(const flp_record *record)
{
    tuned_publish(record);
    tuned_open_flags(0);
    tuned_make_plan();
}

const char *tuned_tile_variant(void)
{
    return tuned.plan->kernels[FLP_ROLE_TILE]->manifest.variant;
}

void tuned_make_memory_slow(void)
{
    fake_driver.clock_khz = 1980000;
    fake_driver.memory_clock_khz = 2619000;
    fake_driver.memory_bits = 5120;
}
