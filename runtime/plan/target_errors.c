/* A plan's count of out-of-range targets. */
#include "plan/target_errors.h"

#include "base/mutex.h"
#include "base/status.h"
#include "plan/plan.h"
#include "plan/tally.h"

void flp_target_errors_add(flp_plan *plan, int64_t count, int64_t first)
{
    if (count == 0)
        return;
    flp_mutex_lock(&plan->tally_mutex);
    if (plan->bad_count == 0 || first < plan->bad_first)
        plan->bad_first = first;
    plan->bad_count += count;
    flp_mutex_unlock(&plan->tally_mutex);
}

static void take_from_host(flp_plan *plan, uint64_t *taken)
{
    flp_mutex_lock(&plan->tally_mutex);
    taken[0] = (uint64_t)plan->bad_count;
    taken[1] = (uint64_t)plan->bad_first;
    plan->bad_count = 0;
    flp_mutex_unlock(&plan->tally_mutex);
}

flp_status flp_plan_target_errors(flp_plan *plan, int64_t *count, int64_t *first_row)
{
    uint64_t taken[2] = { 0, 0 };
    flp_status status = FLP_OK;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a plan");
    if (flp_plan_on_gpu(plan))
        status = flp_tally_take(plan, FLP_TALLY_TARGETS, taken);
    else
        take_from_host(plan, taken);
    if (status != FLP_OK)
        return status;
    if (count)
        *count = (int64_t)taken[0];
    if (first_row)
        *first_row = taken[0] ? (int64_t)taken[1] : -1;
    return FLP_OK;
}
