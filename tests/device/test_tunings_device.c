/* Every kind of candidate of a tuning on the device: each agrees with the CPU path on few rows and has the default's bits on all. */
#include "cli/operators.h"
#include "core/tune_target.h"
#include "device/device_test.h"

static void every_candidate_has_the_default_s_results(void **state)
{
    const flp_tune_target_options options = { .limit = flp_device_test.quick ? 2 : 12 };
    const flp_operator_calls *calls;
    flp_problem_storage problem;
    flp_tune_target *target;
    double seconds;
    int checked = 0, offers;

    assert_succeeds(flp_operators_parse(*state, &calls, &problem));
    assert_succeeds(flp_tune_target_create(flp_device_test.context, calls, &problem, &options, &target));
    assert_succeeds(flp_tune_target_offer(target, 0, &offers));
    for (int i = 0; i < flp_tune_target_count(target); i++) {
        const flp_status status = flp_tune_target_prepare(target, i);

        if (i > 0 && status == FLP_OUT_OF_MEMORY) { /* a much larger workspace than the default's */
            assert_contains(flp_error_message(), "a workspace of");
            continue;
        }
        if (i > 0 && status == FLP_NO_VARIANT) { /* the call does not launch its kernel, or the kernel spills more than the default */
            assert_true(strstr(flp_error_message(), "do not launch its kernel") || strstr(flp_error_message(), "registers in local memory"));
            continue;
        }
        assert_succeeds(status);
        assert_succeeds(flp_tune_target_check(target, i));
        assert_succeeds(flp_tune_target_time(target, i, &seconds));
        assert_true(seconds > 0);
        checked++;
    }
    print_message("# %d candidates\n", checked);
    flp_tune_target_destroy(target);
}

static const char *const problems[] = {
    "linear_logp:bf16:n64:d512:v50264",
    "linear_logp:bf16:n1024:d520:v32768:bias_bf16:argmax:entropy",
    "linear_logp:f32:n1024:d256:v32768",
    "linear_logp:f16:n1024:d512:v32768:dv:portable",
    "linear_logp_backward:bf16:n1024:d512:v32768:gh_bf16:gw_bf16",
    "linear_logp_backward:bf16:n1024:d512:v32768:dv:gh_f32:gw_f32:portable",
    "linear_cross_entropy:bf16:n1024:d512:v32768:gh_bf16:gw_bf16",
    "linear_cross_entropy:bf16:n1024:d512:v32768:gh_bf16:gw_bf16:budget268435456",
    "logits_logp:bf16:n64:v131072",
    "logits_logp:f32:n2048:v1024:argmax",
    "logits_logp_backward:bf16:n2048:v32768",
    "logits_logp_backward:bf16:n2048:v32768:fused",
    "weighted_sum:bf16:n4096:d4096",
};

static struct CMUnitTest test_at(int index)
{
    return flp_device_test_case(problems[index], every_candidate_has_the_default_s_results, problems[index]);
}

int main(int argc, char **argv)
{
    int failed = flp_device_test_start(argc, argv);

    if (failed)
        return failed;
    failed = flp_device_test_run_cases("tunings", (int)(sizeof(problems) / sizeof(*problems)), test_at);
    flp_device_test_finish();
    return failed;
}
