/* The regime solo: an operation's time and joules, on a driver and a counter that are made up. */
#include "solo.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/console.h"
#include "regimes.h"
#include "runtime/assertions.h"
#include "runtime/fake_driver.h"
#include "runtime/fake_library.h"
#include "runtime/fake_nvml.h"

static flp_gpu gpu;
static const flp_measure_options options = { .repeats = 1, .solo_ms = 40 };
static int launches;
static char why[FLP_STATUS_MESSAGE_BYTES];

static flp_status launch(void *data)
{
    launches++;
    usleep(*(const unsigned *)data);
    return FLP_OK;
}

static flp_status fail_to_launch(void *data)
{
    (void)data;
    return FLP_CUDA_FAILED;
}

static unsigned microseconds = 1000;
static const flp_measured operation = { launch, &microseconds };

static int start(void **state)
{
    (void)state;
    fake_library_install();
    fake_library.nvml = 1;
    gpu = (flp_gpu){ .device = 0 };
    assert_succeeds(flp_driver_get(&gpu.driver));
    fake_nvml.millijoules_step = 1000;
    launches = 0;
    return 0;
}

/* The fake driver says 1 ms from event to event, and each reading of the counter adds 1 J. */
static void joules_are_the_counters_steps_by_time(void **state)
{
    const double begin = flp_clock_seconds();
    double readings, seconds;
    flp_solo solo;

    (void)state;
    assert_succeeds(flp_solo_measure(&gpu, NULL, &options, &operation, &solo, why));
    seconds = flp_clock_seconds() - begin;
    readings = (double)fake_nvml.millijoules / 1000;
    assert_string_equal("", why);
    assert_true(1 / solo.milliseconds > 8 && 1 / solo.milliseconds < launches);
    assert_true(fabs(1 / solo.milliseconds - rint(1 / solo.milliseconds)) < 1e-9);
    /* From the loop's first reading to its last: all but the one before it and the first. */
    assert_true(readings > 3 && solo.watts * seconds > readings - 2);
    assert_true(solo.watts * seconds / 4 < readings - 2); /* the warm-up is a quarter beside */
    assert_true(fabs(solo.joules - solo.watts * solo.milliseconds / 1e3) <= 1e-12 * solo.joules);
}

static void assert_no_joules(const char *reason)
{
    flp_solo solo;

    assert_succeeds(flp_solo_measure(&gpu, NULL, &options, &operation, &solo, why));
    assert_contains(why, reason);
    assert_true(solo.milliseconds > 0 && solo.joules == 0 && solo.watts == 0);
}

static void what_keeps_joules_away_is_said(void **state)
{
    (void)state;
    fake_nvml.energy_failure = 3;
    assert_no_joules("no energy counter of this device: error 3");
    fake_nvml.energy_failure = 0;
    fake_nvml.millijoules_step = 0;
    assert_no_joules("moved less than twice in 40 ms");
    fake_nvml.failure = 15;
    assert_no_joules("error 15");
}

static void a_launch_that_fails_fails_the_measurement(void **state)
{
    flp_solo solo;

    (void)state;
    assert_int_equal(FLP_CUDA_FAILED, flp_solo_measure(&gpu, NULL, &options, &(flp_measured){ fail_to_launch, NULL }, &solo, why));
}

static double member(json_t *results, const char *name)
{
    return json_number_value(json_object_get(json_object_get(results, "solo"), name));
}

static void the_results_have_both_operations(void **state)
{
    json_t *results = json_object();

    (void)state;
    assert_succeeds(flp_regimes_measure(&gpu, NULL, 1 << FLP_SOLO, &options, &operation, &operation, results));
    assert_int_equal(1, json_object_size(results));
    assert_true(member(results, "ours_joules") > 0 && member(results, "baseline_joules") > 0);
    assert_true(member(results, "energy_ratio") == member(results, "baseline_joules") / member(results, "ours_joules"));
    fake_nvml.energy_failure = 3;
    assert_succeeds(flp_regimes_measure(&gpu, NULL, 1 << FLP_SOLO, &options, &operation, &operation, results));
    assert_null(json_object_get(json_object_get(results, "solo"), "ours_joules"));
    assert_contains(json_string_value(json_object_get(json_object_get(results, "solo"), "no_joules")), "error 3");
    json_decref(results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(joules_are_the_counters_steps_by_time, start),
        cmocka_unit_test_setup(what_keeps_joules_away_is_said, start),
        cmocka_unit_test_setup(a_launch_that_fails_fails_the_measurement, start),
        cmocka_unit_test_setup(the_results_have_both_operations, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
