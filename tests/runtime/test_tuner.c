/* The tuner on simulated devices: who wins, who is dropped, and how a tuning ends. */
#include "tune/tuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "assertions.h"
#include "simulated_device.h"
#include "tune/tuner_field.h"

static simulated_device device;
static flp_tuner_result result;

static int clean(void **state)
{
    (void)state;
    flp_tuner_result_free(&result);
    return 0;
}

static void run(const flp_tuner_options *options)
{
    flp_tuner_result_free(&result);
    assert_succeeds(flp_tuner_run(device.candidates, device.count, &device.device, options, &result));
}

static void run_seed(uint64_t seed)
{
    run(&(flp_tuner_options){ .seed = seed });
}

static void the_fastest_wins(void **state)
{
    const double truth[] = { 1e-3, 1.1e-3, 0.9e-3, 2e-3 };

    (void)state;
    simulated_device_set(1, truth, 4, &device);
    run_seed(1);
    assert_int_equal(2, result.winner);
    assert_int_equal(FLP_CANDIDATE_DROPPED, result.figures[3].fate);
    assert_true(fabs(result.figures[2].ratio - 0.9) < 0.01);
    assert_true(result.figures[2].ratio_low <= result.figures[2].ratio && result.figures[2].ratio <= result.figures[2].ratio_high);
    assert_true(result.figures[2].ratio_high < 0.92);
    assert_true(result.figures[3].ratio > 1.8);
    assert_true(result.figures[0].ratio == 1);
    assert_true(result.figures[2].seconds > 0.7e-3 && result.figures[2].seconds < 1.3e-3);
}

static void the_default_alone_is_timed_and_wins(void **state)
{
    const double truth[] = { 1e-3 };

    (void)state;
    simulated_device_set(1, truth, 1, &device);
    run_seed(1);
    assert_int_equal(0, result.winner);
    assert_int_equal(FLP_TUNING_SETTLED, result.ended);
    assert_int_equal(8, result.figures[0].rounds);
    assert_true(result.figures[0].seconds > 0);
}

/* Among five with the same time the first name wins; with less workspace another; and the default against all that are not faster for certain. */
static void ties_go_to_less_workspace_then_to_the_name(void **state)
{
    const double truth[] = { 1.2e-3, 1e-3, 1e-3, 1.001e-3, 1e-3, 0.999e-3 };
    const char *const names[] = { "", "tile.d=1", "tile.b=1", "tile.a=1", "tile.e=1", "tile.c=1" };

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        simulated_device_set(seed, truth, 6, &device);
        for (int i = 0; i < 6; i++)
            device.candidates[i].tuning = names[i];
        run_seed(seed);
        assert_int_equal(3, result.winner);
        device.candidates[4].workspace_bytes = 1000;
        run_seed(seed + 100);
        assert_int_equal(4, result.winner);
    }
}

static void the_default_loses_only_by_more_than_the_noise(void **state)
{
    const double truth[] = { 1e-3, 1e-3, 0.9998e-3, 1.0002e-3 };
    int kept = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        simulated_device_set(seed, truth, 4, &device);
        device.noise = 0.01;
        for (int i = 1; i < 4; i++)
            device.candidates[i].workspace_bytes = 0;
        run_seed(seed);
        kept += result.winner == 0;
    }
    /* An interval of 98 % lies below 0 by chance in 1 of 100, for each of three. */
    assert_in_range(kept, 92, 100);
}

static void what_is_rejected_is_not_timed_and_never_wins(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        simulated_device_draw(seed, &device);
        run_seed(seed);
        assert_int_equal(SIMULATED_SOUND, device.kinds[result.winner]);
        for (int i = 0; i < device.count; i++) {
            if (device.kinds[i] == SIMULATED_UNCOMPILABLE || device.kinds[i] == SIMULATED_WRONG) {
                assert_int_equal(FLP_CANDIDATE_REJECTED, result.figures[i].fate);
                assert_int_equal(0, device.runs[i]);
                assert_contains(result.figures[i].reason, device.kinds[i] == SIMULATED_WRONG ? "is wrong" : "does not compile");
            }
            assert_int_equal(device.kinds[i] != SIMULATED_UNCOMPILABLE, device.checks[i] > 0);
        }
    }
}

static void one_that_is_wrong_later_drops_nobody(void **state)
{
    const double truth[] = { 1e-3, 0.5e-3, 0.9e-3, 0.95e-3 };

    (void)state;
    simulated_device_set(1, truth, 4, &device);
    device.kinds[1] = SIMULATED_FLAKY;
    run_seed(1);
    assert_int_equal(2, result.winner);
    assert_int_equal(FLP_CANDIDATE_REJECTED, result.figures[1].fate);
    assert_int_equal(2, device.checks[1]);
    assert_true(device.checks[2] >= 2);
}

static void a_default_that_fails_ends_it(void **state)
{
    const double truth[] = { 1e-3, 0.5e-3 };

    (void)state;
    simulated_device_set(1, truth, 2, &device);
    device.kinds[0] = SIMULATED_UNCOMPILABLE;
    assert_fails(FLP_COMPILE_FAILED, flp_tuner_run(device.candidates, 2, &device.device, &(flp_tuner_options){ 0 }, &result), "the default: candidate 0");
    flp_tuner_result_free(&result);
    simulated_device_set(1, truth, 2, &device);
    device.fails_at = 5;
    assert_fails(FLP_CUDA_FAILED, flp_tuner_run(device.candidates, 2, &device.device, &(flp_tuner_options){ 0 }, &result), "the device is lost");
}

static void there_is_one_default(void **state)
{
    const double truth[] = { 1e-3, 0.5e-3 };

    (void)state;
    simulated_device_set(1, truth, 2, &device);
    assert_fails(FLP_BAD_ARGUMENT, flp_tuner_run(device.candidates + 1, 1, &device.device, &(flp_tuner_options){ 0 }, &result), "got 0");
    device.candidates[1].tuning = "";
    assert_fails(FLP_BAD_ARGUMENT, flp_tuner_run(device.candidates, 2, &device.device, &(flp_tuner_options){ 0 }, &result), "got 2");
}

/* Throttled for a third of the time, in spells that are longer than a round. */
static void throttled_rounds_are_repeated(void **state)
{
    const double truth[] = { 1e-3, 1.02e-3, 0.97e-3, 1.05e-3, 0.94e-3 };
    flp_tuner_samples samples = { .candidates = 1 };

    (void)state;
    for (int i = 0; i < 9; i++) {
        assert_succeeds(flp_tuner_samples_begin_round(&samples));
        flp_tuner_samples_add(&samples, 0, 1, i == 0 ? 1500 : i == 4 ? 0 : 1980);
        flp_tuner_samples_add(&samples, 0, 1, 1980);
    }
    flp_tuner_samples_judge(&samples);
    assert_int_equal(8, samples.counting);
    assert_int_equal(0, samples.counts[0]);
    flp_tuner_samples_free(&samples);

    simulated_device_set(3, truth, 5, &device);
    device.idle_seconds = 0.1;
    device.drift_size = 0.02;
    device.throttled_at = device.seconds + 6; /* behind the compilation */
    run_seed(3);
    assert_true(result.repeated > 0);
    assert_int_equal(result.rounds, result.figures[result.winner].rounds);
    assert_int_equal(4, result.winner);
}

static void a_budget_is_exceeded_by_one_run_at_most(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        double budget, begun;

        simulated_device_draw(seed, &device);
        budget = 0.05 + (double)seed * 0.3;
        begun = device.seconds;
        run(&(flp_tuner_options){ .seed = seed, .budget_seconds = budget });
        assert_true(device.seconds - begun <= budget + device.longest);
        assert_true(fabs(result.spent_seconds - (device.seconds - begun)) < 1e-9);
        assert_true(result.ended == FLP_TUNING_BUDGET || device.seconds - begun <= budget);
        assert_int_equal(SIMULATED_SOUND, device.kinds[result.winner]);
        assert_true(simulated_device_loss_to_default(&device, result.winner) <= 0.01);
    }
}

static void what_the_budget_leaves_untried_is_what_the_model_thinks_slow(void **state)
{
    double tried = 0, untried = 0;
    int others = 0;

    (void)state;
    simulated_device_draw(14, &device);
    run(&(flp_tuner_options){ .budget_seconds = 20 });
    for (int i = 0; i < device.count; i++) {
        const double predicted = device.candidates[i].predicted_seconds;

        if (i == device.standard)
            continue;
        if (result.figures[i].fate != FLP_CANDIDATE_UNTRIED)
            tried = fmax(tried, predicted);
        else
            untried = others++ ? fmin(untried, predicted) : predicted;
    }
    assert_true(others > 0 && tried > 0 && tried <= untried);
    assert_int_equal(FLP_CANDIDATE_LEFT, result.figures[device.standard].fate);
}

static int stop_at(void *left, const flp_tuner_progress *progress)
{
    assert_true(progress->compiled <= progress->candidates && progress->left <= progress->compiled);
    assert_true(progress->ratio > 0 && progress->ratio <= 1.0);
    return --*(int *)left < 0;
}

static void interrupted_at_any_point_it_answers_by_what_it_knows(void **state)
{
    int calls = 0, improved = 0;

    (void)state;
    for (int at = 0;; at++) {
        int left = at;

        simulated_device_draw(66, &device);
        run(&(flp_tuner_options){ .seed = 66, .rounds = 16, .progress = stop_at, .data = &left });
        if (left >= 0)
            break;
        calls++;
        assert_int_equal(FLP_TUNING_INTERRUPTED, result.ended);
        assert_int_equal(SIMULATED_SOUND, device.kinds[result.winner]);
        assert_true(simulated_device_loss_to_default(&device, result.winner) <= 0.01);
        assert_true(result.winner == device.standard || result.figures[result.winner].rounds >= 5);
        improved += simulated_device_loss_to_default(&device, result.winner) < -0.03;
    }
    assert_true(calls > 80 && improved > 20);
    assert_true(simulated_device_loss_to_default(&device, result.winner) < -0.09);
}

/* Whatever the order within rounds and the device's mood: the same winner, or one that ties with it. */
static void two_tunings_agree(void **state)
{
    int same = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        int first;

        simulated_device_draw(seed, &device);
        run_seed(seed);
        first = result.winner;
        run_seed(seed + 1000);
        same += result.winner == first;
        assert_true(fabs(device.truth[result.winner] / device.truth[first] - 1) < 0.02);
    }
    assert_true(same >= 85);
}

static void the_same_seed_is_the_same_tuning(void **state)
{
    double ratio;
    int winner;

    (void)state;
    simulated_device_draw(5, &device);
    run_seed(9);
    winner = result.winner;
    ratio = result.figures[winner].ratio;
    simulated_device_draw(5, &device);
    run_seed(9);
    assert_int_equal(winner, result.winner);
    assert_true(ratio == result.figures[winner].ratio);
}

static void threads_compile_while_others_are_timed(void **state)
{
    (void)state;
    for (int jobs = 1; jobs <= 4; jobs += 3) {
        simulated_device_draw(14, &device);
        device.in_threads = 1;
        run(&(flp_tuner_options){ .seed = 14, .jobs = jobs });
        assert_int_equal(device.count, device.compilations);
        assert_in_range(device.most_compiling, 1, jobs);
        assert_int_equal(SIMULATED_SOUND, device.kinds[result.winner]);
        assert_true(simulated_device_loss(&device, result.winner) < 0.02);
    }
}

static void threads_end_when_it_is_interrupted(void **state)
{
    (void)state;
    for (int at = 0; at < 12; at += 3) {
        int left = at;

        simulated_device_draw(14, &device);
        device.in_threads = 1;
        run(&(flp_tuner_options){ .jobs = 4, .progress = stop_at, .data = &left });
        assert_int_equal(FLP_TUNING_INTERRUPTED, result.ended);
        assert_int_equal(0, device.compiling);
        assert_true(device.compilations < device.count);
    }
}

enum { RUNS_WHILE_COMPILING = 12 };
static atomic_int runs, compiled;

/* The compilation of the last candidate takes until the two others were timed for six rounds. */
static flp_status compile_long(void *self, int candidate)
{
    while (candidate == 2 && runs < RUNS_WHILE_COMPILING)
        usleep(100);
    compiled = candidate == 2;
    return device.device.compile(self, candidate);
}

static flp_status time_slowly(void *self, int candidate, double *seconds, double *clock_mhz)
{
    while (runs == RUNS_WHILE_COMPILING && !compiled)
        usleep(100);
    if (runs++ >= RUNS_WHILE_COMPILING)
        usleep(20000); /* the tuner learns of the compilation before the device's time is over */
    return device.device.time(self, candidate, seconds, clock_mhz);
}

/* What is left of the time is enough for two or three rounds. */
static void rounds_during_the_compilation_count_where_there_is_no_time_for_others(void **state)
{
    const double truth[] = { 1e-3, 0.8e-3, 1e-3 };
    flp_tuner_device slow;

    (void)state;
    simulated_device_set(1, truth, 3, &device);
    simulated_device_calm(&device);
    device.in_threads = 1;
    for (int i = 0; i < 3; i++)
        device.candidates[i].predicted_seconds = i + 1;
    slow = device.device;
    slow.compile = compile_long;
    slow.time = time_slowly;
    runs = compiled = 0;
    flp_tuner_result_free(&result);
    assert_succeeds(flp_tuner_run(device.candidates, 3, &slow, &(flp_tuner_options){ .jobs = 1, .budget_seconds = 0.14 }, &result));
    assert_int_equal(FLP_TUNING_BUDGET, result.ended);
    assert_true(result.figures[1].rounds >= 6);
    assert_int_equal(1, result.winner);
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* By drawing resamples: their medians' quantiles are those that the rank says. */
static void the_interval_is_the_bootstraps(void **state)
{
    enum { RESAMPLES = 20000 };
    static double medians[RESAMPLES];
    double resample[41];

    (void)state;
    simulated_device_draw(1, &device);
    for (int count = 1; count <= 41; count += 4) {
        double low;

        for (int i = 0; i < RESAMPLES; i++) {
            for (int k = 0; k < count; k++)
                resample[k] = 1 + (int)(simulated_device_uniform(&device) * count);
            qsort(resample, (size_t)count, sizeof(double), compare_numbers);
            medians[i] = resample[count / 2];
        }
        qsort(medians, RESAMPLES, sizeof(double), compare_numbers);
        low = medians[RESAMPLES / 100];
        assert_true(fabs(low - flp_tuner_interval_rank(count)) <= (count < 20 ? 0 : 1));
    }
}

int main(void)
{
#define TUNER_TEST(name) cmocka_unit_test_teardown(name, clean)
    const struct CMUnitTest tests[] = {
        TUNER_TEST(the_fastest_wins),
        TUNER_TEST(the_default_alone_is_timed_and_wins),
        TUNER_TEST(ties_go_to_less_workspace_then_to_the_name),
        TUNER_TEST(the_default_loses_only_by_more_than_the_noise),
        TUNER_TEST(what_is_rejected_is_not_timed_and_never_wins),
        TUNER_TEST(one_that_is_wrong_later_drops_nobody),
        TUNER_TEST(a_default_that_fails_ends_it),
        TUNER_TEST(there_is_one_default),
        TUNER_TEST(throttled_rounds_are_repeated),
        TUNER_TEST(a_budget_is_exceeded_by_one_run_at_most),
        TUNER_TEST(what_the_budget_leaves_untried_is_what_the_model_thinks_slow),
        TUNER_TEST(interrupted_at_any_point_it_answers_by_what_it_knows),
        TUNER_TEST(two_tunings_agree),
        TUNER_TEST(the_same_seed_is_the_same_tuning),
        TUNER_TEST(threads_compile_while_others_are_timed),
        TUNER_TEST(threads_end_when_it_is_interrupted),
        TUNER_TEST(rounds_during_the_compilation_count_where_there_is_no_time_for_others),
        TUNER_TEST(the_interval_is_the_bootstraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
