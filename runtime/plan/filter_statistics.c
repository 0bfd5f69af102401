/* Reads what the gradient filter of a plan passed over. */
#include "plan/filter_statistics.h"

#include "base/status.h"
#include "plan/target_errors.h"

CUdeviceptr flp_filter_statistics_at(const flp_plan *plan)
{
    return plan->target_errors + FLP_TARGET_ERRORS_BYTES;
}

flp_status flp_plan_filter_statistics(flp_plan *plan, int64_t *blocks, int64_t *passed_over)
{
    static const uint64_t none[2] = { 0, 0 };
    uint64_t words[2] = { 0, 0 };
    flp_status status = FLP_OK;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a plan");
    if (flp_plan_on_gpu(plan))
        status = flp_plan_take_words(plan, flp_filter_statistics_at(plan), none, words, sizeof(words));
    if (status != FLP_OK)
        return status;
    if (blocks)
        *blocks = (int64_t)words[1];
    if (passed_over)
        *passed_over = (int64_t)(words[1] - words[0]);
    return FLP_OK;
}
