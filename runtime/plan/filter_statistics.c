/* What the gradient filter of a plan passed over. */
#include "base/status.h"
#include "plan/plan.h"
#include "plan/tally.h"

flp_status flp_plan_filter_statistics(flp_plan *plan, int64_t *blocks, int64_t *passed_over)
{
    uint64_t taken[2] = { 0, 0 }; /* kept, and all */
    flp_status status = FLP_OK;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a plan");
    if (flp_plan_on_gpu(plan))
        status = flp_tally_take(plan, FLP_TALLY_FILTER, taken);
    if (status != FLP_OK)
        return status;
    if (blocks)
        *blocks = (int64_t)taken[1];
    if (passed_over)
        *passed_over = (int64_t)(taken[1] - taken[0]);
    return FLP_OK;
}
