/* Plans and a row's bits: only a record of all numbers of rows changes them, and only where that is asked for. */
#include <stdio.h>
#include <string.h>

#include "fake_call.h"
#include "operators/linear/linear_logp_plan.h"
#include "tuned_plan.h"

/* The numeric identity of a plan of so many rows, which took its tuning from there. */
static const char *numerics_of(int64_t rows, flp_tuned_by wanted)
{
    tuned.problem.rows = rows;
    tuned_make_plan();
    assert_int_equal(wanted, flp_plan_tuned_by(tuned.plan));
    return flp_plan_numerics(tuned.plan);
}

static void a_tuning_of_one_number_of_rows_changes_no_bits(void **state)
{
    const flp_record record = tuned_record_of(tuned_text, "tile.bv=128", 0.9);

    (void)state;
    tuned_plan_with(&record);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    assert_contains(tuned_tile_variant(), ".bv168.");
    assert_contains(flp_plan_describe(tuned.plan), "is there, but its tuning changes a row's bits, and the context has no FLP_CONTEXT_TUNED_BITS)\n");
    tuned_open_flags(FLP_CONTEXT_TUNED_BITS);
    numerics_of(3000, FLP_TUNED_NOT);
    assert_contains(tuned_tile_variant(), ".bv168.");
    assert_contains(flp_plan_describe(tuned.plan), "its tuning gives a row other bits than the record of all numbers of rows decides)\n");
    assert_null(strstr(fake_call_log(), "left out"));
}

static void a_record_of_all_rows_decides_on_their_bits(void **state)
{
    const flp_record decision = tuned_decision_of("tile.bv=128"), of_rows = tuned_record_of(tuned_text, "tile.bv=128,tile.stages=3", 0.9);
    const flp_record other_bits = tuned_record_of("linear_logp:bf16:n64:d2048:v131072", "tile.stages=3", 0.9);
    char before[512], few[512];

    (void)state;
    tuned_publish(&of_rows);
    tuned_publish(&other_bits);
    tuned_plan_with(&decision);
    assert_contains(tuned_tile_variant(), ".bv168."); /* nobody asked for it */
    snprintf(before, sizeof(before), "%s", flp_plan_numerics(tuned.plan));
    tuned_open_flags(FLP_CONTEXT_TUNED_BITS);
    snprintf(few, sizeof(few), "%s", numerics_of(10, FLP_TUNED_MODEL));
    assert_string_equal("tile.bv=128", flp_plan_tuning(tuned.plan));
    assert_contains(flp_plan_describe(tuned.plan), "tuning: tile.bv=128 (model, from a record of linear_logp:bf16:d2048:v131072)\n");
    assert_string_not_equal(before, few);
    assert_string_equal(few, numerics_of(3000, FLP_TUNED_EXACT));
    assert_string_equal("tile.bv=128,tile.stages=3", flp_plan_tuning(tuned.plan));
    assert_string_equal(few, numerics_of(100000, FLP_TUNED_MODEL));
}

/* In place of the one before, whatever they say. */
static void there_is_one_decision(void **state)
{
    const flp_record first = tuned_decision_of("tile.bv=128"), second = tuned_decision_of("tile.bv=192,tile.s=66"), third = tuned_decision_of("");

    (void)state;
    tuned_publish(&first);
    tuned_publish(&second);
    tuned_open_flags(FLP_CONTEXT_TUNED_BITS);
    assert_contains(numerics_of(3000, FLP_TUNED_MODEL), ".bv192.s66.");
    tuned_publish(&third);
    tuned_open_flags(FLP_CONTEXT_TUNED_BITS);
    assert_contains(numerics_of(3000, FLP_TUNED_NOT), ".bv168.");
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, tuned_start, tuned_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(a_tuning_of_one_number_of_rows_changes_no_bits),
        test_of(a_record_of_all_rows_decides_on_their_bits),
        test_of(there_is_one_decision),
    };

    return cmocka_run_group_tests_name("tuned bits", tests, NULL, NULL);
}
