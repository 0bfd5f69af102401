/* How many backward executions of a plan did not find their forward. */
#include "base/status.h"
#include "plan/plan.h"
#include "plan/tally.h"

flp_status flp_plan_unmatched_backwards(flp_plan *plan, int64_t *count)
{
    uint64_t taken[2] = { 0, 0 };
    flp_status status = FLP_OK;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a plan");
    if (flp_plan_on_gpu(plan))
        status = flp_tally_take(plan, FLP_TALLY_UNMATCHED, taken);
    if (status == FLP_OK && count)
        *count = (int64_t)taken[0];
    return status;
}
