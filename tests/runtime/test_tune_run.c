/* The tuner over the candidates of a problem: the kernels by themselves, then those that won together. */
#include "core/tune_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "assertions.h"
#include "fake_tune_target.h"
#include "cli/operators.h"

static flp_tune_target *target;
static flp_tuner_result result;
static const flp_tuner_options plain;

static void open_target(void)
{
    const flp_operator_calls *calls;
    flp_problem_storage problem;

    flp_tune_target_destroy(target);
    assert_succeeds(flp_operators_parse("linear_logp:bf16:n3000:d2048:v131072", &calls, &problem));
    assert_succeeds(flp_tune_target_create(NULL, calls, &problem, &(flp_tune_target_options){ 0 }, &target));
}

static int make(void **state)
{
    (void)state;
    fake_tune_reset();
    return 0;
}

static int clean(void **state)
{
    (void)state;
    flp_tuner_result_free(&result);
    flp_tune_target_destroy(target);
    target = NULL;
    return 0;
}

static void run(const flp_tuner_options *options)
{
    open_target();
    flp_tuner_result_free(&result);
    assert_succeeds(flp_tune_run(target, NULL, options, &result));
}

static const char *winner(void)
{
    return flp_tune_target_candidate(target, result.winner)->tuning;
}

static void what_wins_of_each_kernel_wins_together(void **state)
{
    (void)state;
    run(&plain);
    assert_string_equal("combine.w=1,tile.group=2", winner());
    assert_true(fabs(result.figures[result.winner].ratio - 0.9 * 0.95) < 0.01);
    assert_int_equal(FLP_CANDIDATE_DROPPED, result.figures[1].fate);
    assert_int_equal(FLP_CANDIDATE_DROPPED, result.figures[5].fate);
    assert_true(result.figures[5].ratio > 1.05);
    assert_true(result.figures[0].seconds > 0);
}

static void a_kernel_that_takes_little_time_is_tuned_too(void **state)
{
    (void)state;
    fake_tune.tile_factors[1] = 0.5;
    fake_tune.combine_factors[0] = 0.97; /* far behind the best of all, but not of its kernel's */
    run(&plain);
    assert_string_equal("combine.w=1,tile.group=2", winner());
}

static void what_is_slower_together_loses_to_one_of_them(void **state)
{
    (void)state;
    fake_tune.joined_factor = 1.3;
    run(&plain);
    assert_string_equal("tile.group=2", winner());
}

typedef struct {
    int left, calls, last_compiled;
} stopper;

static int stop(void *data, const flp_tuner_progress *progress)
{
    stopper *s = data;

    s->calls++;
    assert_in_range(progress->best, 0, progress->candidates - 1);
    assert_in_range(progress->compiled, 0, progress->candidates);
    s->last_compiled = progress->compiled;
    return s->left-- <= 0;
}

/* It may change the fields that those of one kernel do, and is not put together with them. */
static void what_a_plan_takes_without_a_record_stands_beside_the_others(void **state)
{
    static const struct {
        double factor;
        const char *winner;
    } cases[] = { { 0.8, "combine.w=9,tile.group=9" }, { 0.92, "combine.w=1,tile.group=2" }, { 1.1, "combine.w=1,tile.group=2" } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        fake_tune.advised_factor = cases[i].factor;
        run(&plain);
        assert_string_equal(cases[i].winner, winner());
        assert_true(result.figures[1].rounds > 0);
        assert_int_equal(8, flp_tune_target_count(target)); /* with those of two kernels that won */
    }
    fake_tune.advised_factor = 0.95;
    fake_tune.combines = 0;
    run(&plain);
    assert_string_equal("tile.group=2", winner());
    assert_int_equal(5, flp_tune_target_count(target));
}

/* No record is better than one of a plan that is slower than without. */
static void as_long_as_that_was_not_timed_nothing_was_learned(void **state)
{
    stopper some = { .left = 0 };

    (void)state;
    fake_tune.advised_factor = 0.8;
    run(&(flp_tuner_options){ .progress = stop, .data = &some });
    assert_int_equal(FLP_TUNING_INTERRUPTED, result.ended);
    assert_int_equal(0, result.figures[result.winner].rounds);
    fake_tune.slow_compilation = 1;
    fake_tune.slow_compilation_microseconds = 500000; /* of 800000, of which four tenths are for it */
    run(&(flp_tuner_options){ .budget_seconds = 0.8 });
    assert_int_equal(0, result.figures[1].rounds);
    assert_int_equal(0, result.winner);
    assert_int_equal(0, result.figures[0].rounds);
    fake_tune.slow_compilation_microseconds = 0;
    fake_tune.wrong = 1;
    run(&plain);
    assert_string_equal("combine.w=1,tile.group=2", winner());
    assert_int_equal(FLP_CANDIDATE_REJECTED, result.figures[1].fate);
    assert_true(result.figures[result.winner].rounds > 0);
}

static int is_told(const flp_tuner_figures *figures)
{
    return figures->rounds >= FLP_TUNER_LEAST_TO_WIN || figures->fate == FLP_CANDIDATE_REJECTED || figures->fate == FLP_CANDIDATE_DROPPED;
}

static void by_a_few_rounds_nothing_was_learned(void **state)
{
    stopper all = { .left = 1 << 30 };
    int untold = 0;

    (void)state;
    fake_tune.advised_factor = 0.95;
    run(&(flp_tuner_options){ .progress = stop, .data = &all });
    for (int at = 0; at < all.calls; at += 3) {
        stopper some = { .left = at };

        run(&(flp_tuner_options){ .progress = stop, .data = &some });
        assert_true(is_told(&result.figures[1]) || result.figures[result.winner].rounds == 0);
        untold += result.figures[1].rounds > 0 && !is_told(&result.figures[1]);
    }
    assert_true(untold > 3);
}

/* With so few rounds the default is the winner whatever the times are. */
static void a_time_of_a_few_rounds_makes_no_record_of_the_default(void **state)
{
    (void)state;
    fake_tune.tiles = 1;
    fake_tune.combines = 0;
    fake_tune.tile_factors[0] = 0.9;
    fake_tune.slow_microseconds = 40000;
    for (double budget = 0.05; budget < 0.5; budget += 0.08) {
        run(&(flp_tuner_options){ .budget_seconds = budget });
        assert_true(result.winner || result.figures[0].rounds == 0 || result.figures[0].rounds >= FLP_TUNER_LEAST_TO_WIN);
    }
    fake_tune.tiles = 0; /* where the default is alone, nothing has to be decided */
    run(&(flp_tuner_options){ .budget_seconds = 0.1 });
    assert_true(result.figures[0].rounds > 0);
}

static void what_a_plan_follows_is_a_candidate(void **state)
{
    (void)state;
    fake_tune.added_factor = 0.8;
    open_target();
    assert_succeeds(flp_tune_target_follow(target, "tile.group=9"));
    assert_succeeds(flp_tune_run(target, NULL, &plain, &result));
    assert_string_equal("combine.w=1,tile.group=9", winner());
    flp_tuner_result_free(&result);
    open_target();
    assert_succeeds(flp_tune_target_follow(target, "tile.group=2"));
    assert_succeeds(flp_tune_target_follow(target, ""));
    assert_int_equal(6, flp_tune_target_count(target));
    assert_int_equal(1, flp_tune_target_candidate(target, 2)->is_advised);
    assert_int_equal(0, flp_tune_target_candidate(target, 0)->is_advised);
}

/* The default is in each heat, a winner in two. */
static void what_is_compiled_again_counts_once(void **state)
{
    stopper all = { .left = 1 << 30 }, some;

    (void)state;
    run(&(flp_tuner_options){ .progress = stop, .data = &all });
    assert_int_equal(7, flp_tune_target_count(target)); /* with the one that joins two */
    assert_int_equal(7, result.compiled);
    for (int at = 0; at < all.calls; at += 9) {
        int tried = 1; /* the default */

        some = (stopper){ .left = at };
        run(&(flp_tuner_options){ .progress = stop, .data = &some });
        for (int i = 1; i < flp_tune_target_count(target); i++)
            tried += result.figures[i].fate != FLP_CANDIDATE_UNTRIED;
        assert_in_range(some.last_compiled, 0, result.compiled);
        assert_in_range(result.compiled, tried - (at == 0), tried + 1); /* one may have been compiled and not checked */
    }
}

static void one_that_is_wrong_does_not_win(void **state)
{
    (void)state;
    fake_tune.wrong = 2;
    run(&plain);
    assert_string_equal("combine.w=1", winner());
    assert_int_equal(FLP_CANDIDATE_REJECTED, result.figures[2].fate);
    assert_contains(result.figures[2].reason, "is wrong");
}

static void without_a_faster_one_it_is_the_default(void **state)
{
    (void)state;
    fake_tune.tile_factors[1] = fake_tune.combine_factors[0] = 1.05;
    run(&plain);
    assert_int_equal(0, result.winner);
    assert_true(result.figures[0].rounds > 0 && result.figures[0].ratio == 1);
    fake_tune.tiles = fake_tune.combines = 0;
    run(&plain);
    assert_int_equal(0, result.winner);
    assert_true(result.figures[0].rounds > 0 && result.figures[0].seconds > 0);
}

/* The kernels that won are the ground on which these are timed. */
static void what_is_no_kernels_comes_behind_them(void **state)
{
    (void)state;
    fake_tune.offers = 3;
    fake_tune.offer_factors[0] = 1.05;
    fake_tune.offer_factors[1] = 0.94;
    fake_tune.offer_factors[2] = 0.99;
    run(&plain);
    assert_string_equal("chunks.rows=2,combine.w=1,tile.group=2", winner());
    assert_true(fabs(result.figures[result.winner].ratio - 0.9 * 0.95 * 0.94) < 0.01);
    fake_tune.offer_factors[1] = 1.2;
    fake_tune.offer_factors[2] = 1.1;
    run(&plain);
    assert_string_equal("combine.w=1,tile.group=2", winner());
    fake_tune.offer_factors[0] = 0.9;
    fake_tune.tiles = fake_tune.combines = 0;
    run(&plain);
    assert_string_equal("chunks.rows=1", winner());
}

/* Kernels leave a part of it. */
static void there_is_time_for_what_is_no_kernels(void **state)
{
    (void)state;
    fake_tune.offers = 1;
    fake_tune.offer_factors[0] = 0.8;
    fake_tune.tiles = 12;
    for (int i = 0; i < 12; i++)
        fake_tune.tile_factors[i] = 0.99 - 0.01 * i;
    fake_tune.slow_microseconds = 10000;
    run(&(flp_tuner_options){ .budget_seconds = 0.8 });
    assert_int_equal(FLP_TUNING_BUDGET, result.ended);
    assert_contains(winner(), "chunks.rows=1");
}

static void interrupted_it_has_the_best_so_far(void **state)
{
    stopper all = { .left = 1 << 30 };
    int single = 0;

    (void)state;
    run(&(flp_tuner_options){ .progress = stop, .data = &all });
    for (int at = 0; at < all.calls; at += 7) {
        stopper some = { .left = at };

        run(&(flp_tuner_options){ .progress = stop, .data = &some });
        if (result.ended != FLP_TUNING_INTERRUPTED)
            continue;
        assert_int_not_equal(1, result.winner);
        assert_int_not_equal(3, result.winner);
        single += strcmp(winner(), "tile.group=2") == 0;
    }
    assert_true(single > 5);
}

static void a_budget_is_for_all_heats(void **state)
{
    struct timespec begun, ended;
    double spent;

    (void)state;
    fake_tune.slow_microseconds = 10000;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    run(&(flp_tuner_options){ .budget_seconds = 0.2 });
    clock_gettime(CLOCK_MONOTONIC, &ended);
    spent = (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
    assert_true(result.spent_seconds <= spent);
    assert_int_equal(FLP_TUNING_BUDGET, result.ended);
    assert_true(spent < 2); /* without a budget it is more than 100 rounds of 4 runs */
    assert_true(result.figures[result.winner].ratio <= 1);
}

static void a_record_says_what_was_found(void **state)
{
    const flp_environment environment = { "NVIDIA H200", 132, 62914560, 700, "none", "580", "a1b2c3" };
    flp_record record;
    flp_text text = { 0 };

    (void)state;
    run(&plain);
    assert_succeeds(flp_tune_record(target, &result, FLP_REGIME_BURST, &environment, &record));
    assert_string_equal("linear_logp:bf16:n4096:d2048:v131072", record.identity.problem);
    assert_string_equal("sm_90a", record.identity.arch);
    assert_int_equal(64, strlen(record.identity.templates));
    assert_string_equal("combine.w=1,tile.group=2", record.tuning);
    assert_true(record.ratio_low <= record.ratio && record.ratio <= record.ratio_high);
    assert_true(fabs(record.seconds / record.default_seconds - record.ratio) < 0.1);
    assert_succeeds(flp_record_format(&record, &text));
    assert_contains(text.data, "regime: burst\n");
    flp_text_free(&text);
    memset(result.figures, 0, sizeof(*result.figures) * 3);
    result.winner = 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_tune_record(target, &result, FLP_REGIME_BURST, &environment, &record), "nothing was timed");
}

static void times_under_a_tool_make_no_record(void **state)
{
    const flp_environment environment = { "NVIDIA H200", 132, 62914560, 700, "none", "580", "a1b2c3" };
    flp_record record;

    (void)state;
    run(&plain);
    assert_int_equal(0, setenv("CUDA_INJECTION64_PATH", "/opt/tool.so", 1));
    assert_fails(FLP_BAD_ARGUMENT, flp_tune_record(target, &result, FLP_REGIME_BURST, &environment, &record), "/opt/tool.so");
    assert_contains(flp_error_message(), "tune without it");
    assert_int_equal(0, setenv("CUDA_INJECTION64_PATH", "", 1));
    assert_succeeds(flp_tune_record(target, &result, FLP_REGIME_BURST, &environment, &record));
    assert_int_equal(0, unsetenv("CUDA_INJECTION64_PATH"));
}

static void some_are_timed_beside_the_default(void **state)
{
    const int some[] = { 2, 3 };

    (void)state;
    open_target();
    assert_succeeds(flp_tune_run_among(target, NULL, &plain, some, 2, &result));
    assert_int_equal(2, result.winner);
    assert_int_equal(FLP_CANDIDATE_UNTRIED, result.figures[1].fate);
    assert_true(fabs(result.figures[3].ratio - 1.5) < 0.1);
}

int main(void)
{
#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        RUN_TEST(what_wins_of_each_kernel_wins_together),
        RUN_TEST(a_kernel_that_takes_little_time_is_tuned_too),
        RUN_TEST(what_is_slower_together_loses_to_one_of_them),
        RUN_TEST(what_a_plan_takes_without_a_record_stands_beside_the_others),
        RUN_TEST(as_long_as_that_was_not_timed_nothing_was_learned),
        RUN_TEST(by_a_few_rounds_nothing_was_learned),
        RUN_TEST(a_time_of_a_few_rounds_makes_no_record_of_the_default),
        RUN_TEST(what_a_plan_follows_is_a_candidate),
        RUN_TEST(what_is_compiled_again_counts_once),
        RUN_TEST(one_that_is_wrong_does_not_win),
        RUN_TEST(without_a_faster_one_it_is_the_default),
        RUN_TEST(what_is_no_kernels_comes_behind_them),
        RUN_TEST(there_is_time_for_what_is_no_kernels),
        RUN_TEST(interrupted_it_has_the_best_so_far),
        RUN_TEST(a_budget_is_for_all_heats),
        RUN_TEST(a_record_says_what_was_found),
        RUN_TEST(times_under_a_tool_make_no_record),
        RUN_TEST(some_are_timed_beside_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
