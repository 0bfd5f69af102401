/* Plans and advice: what a GPU with slow memory takes where nothing was measured, and that records go before it. */
#include <stdio.h>
#include <string.h>

#include "fake_driver.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "tune/untuned.h"
#include "tuned_plan.h"

/* Of a step with all exponentials saved, which the budget of the step has room for. */
static flp_record record_of_step(const char *tuning)
{
    static const char kernels[] = "linear_cross_entropy:bf16:n8192:d4096:v128256:gh_bf16:gw_f32:acc_weight:saved_exp";
    flp_record record = tuned_record_of(kernels, tuning, 0.9);

    snprintf(record.identity.problem, sizeof(record.identity.problem), "%s", tuned_step_text);
    return record;
}

static void a_gpu_with_slow_memory_is_advised(void **state)
{
    flp_text lines = { 0 };

    (void)state;
    assert_contains(tuned_make_step_plan(), ".wg128.bv128.");
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
    tuned_make_memory_slow();
    assert_contains(tuned_make_step_plan(), ".bm128.bv256.c2.p4.");
    assert_int_equal(FLP_TUNED_MODEL, flp_plan_tuned_by(tuned.plan));
    assert_contains(flp_plan_tuning(tuned.plan), "weight_product.bv=256,weight_product.stages=4,weight_product.wg=64");
    assert_contains(flp_plan_describe(tuned.plan), "weight_product.wg=64 (model, of memory with 3352 GB/s)\n");
    assert_succeeds(flp_untuned_read(tuned.records, &lines));
    assert_contains(lines.data, tuned_step_text); /* which is to be tuned all the same */
    flp_text_free(&lines);
    fake_driver.memory_clock_khz = 3201000; /* an H200's */
    fake_driver.memory_bits = 6144;
    assert_contains(tuned_make_step_plan(), ".wg128.bv128.");
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
}

static void what_was_measured_goes_before_what_is_advised(void **state)
{
    flp_record record, stale;

    (void)state;
    tuned_make_memory_slow();
    stale = record_of_step("weight_product.stages=6");
    tuned_change_digest(stale.identity.templates);
    tuned_publish(&stale);
    tuned_open_flags(0);
    assert_contains(tuned_make_step_plan(), ".bm128.bv256.c2.p4.");
    record = record_of_step("weight_product.stages=6");
    tuned_publish(&record);
    tuned_open_flags(0);
    assert_contains(tuned_make_step_plan(), ".wg128.bv128.c2.p6.");
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(tuned.plan));
    tuned_forget_records();
    record = record_of_step("");
    snprintf(record.identity.problem, sizeof(record.identity.problem), "linear_cross_entropy:bf16:n8192:d2048:v128256:gh_bf16:gw_f32:acc_weight");
    tuned_publish(&record);
    tuned_open_flags(0);
    assert_contains(tuned_make_step_plan(), ".wg128.bv128.c2.p5."); /* a shape nearby does best with what is selected */
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(tuned.plan));
}

static void a_replaying_context_is_not_advised(void **state)
{
    flp_record stale;

    (void)state;
    tuned_make_memory_slow();
    tuned_open_flags(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_cross_entropy_plan_create(tuned.context, &tuned_step, &tuned.plan), "and the context has FLP_CONTEXT_REPLAY");
    stale = record_of_step("weight_product.stages=6");
    tuned_change_digest(stale.identity.templates);
    tuned_publish(&stale);
    tuned_open_flags(FLP_CONTEXT_REPLAY);
    assert_fails(FLP_NO_VARIANT, flp_linear_cross_entropy_plan_create(tuned.context, &tuned_step, &tuned.plan),
                 "the templates of its kernels have changed since");
    tuned.plan = NULL;
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, tuned_start, tuned_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(a_gpu_with_slow_memory_is_advised),
        test_of(what_was_measured_goes_before_what_is_advised),
        test_of(a_replaying_context_is_not_advised),
    };

    return cmocka_run_group_tests_name("tuned advice", tests, NULL, NULL);
}
