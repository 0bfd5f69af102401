/* Counters of a plan's executions: bad targets, blocks that the gradient filter skipped, and backwards without their forward. */
#include "core/tally.h"

#include <stddef.h>
#include <string.h>

#include "base/mutex.h"
#include "base/status.h"
#include "cuda/device.h"
#include "core/plan.h"

static const uint64_t empty[FLP_TALLIES][2] = { [FLP_TALLY_TARGETS] = { 0, UINT64_MAX } };

flp_status flp_tallies_create(CUdeviceptr *tallies)
{
    flp_tally all[FLP_TALLIES] = { 0 };
    flp_device device;
    flp_status status = flp_device_current(&device);

    for (int role = 0; role < FLP_TALLIES; role++)
        for (int side = 0; side < 2; side++)
            memcpy(all[role].pair[side], empty[role], sizeof(empty[role]));
    *tallies = 0;
    if (status == FLP_OK)
        status = flp_device_memory_allocate(sizeof(all), "a plan's tallies", tallies);
    if (status == FLP_OK)
        status = flp_device_memory_copy(*tallies, NULL, all, sizeof(all));
    if (status != FLP_OK) {
        flp_device_memory_free(&device, *tallies);
        *tallies = 0;
    }
    return status;
}

CUdeviceptr flp_tally_at(const flp_plan *plan, flp_tally_role role)
{
    return plan->tallies + (CUdeviceptr)role * sizeof(flp_tally);
}

/* Switches sides: kernels that begin from here on add to the other pair. */
static flp_status turn(CUdeviceptr tally, uint64_t *side)
{
    const uint64_t other = 1 - *side;
    flp_status status = flp_device_memory_copy(tally + offsetof(flp_tally, side), NULL, &other, sizeof(other));

    if (status == FLP_OK)
        *side = other;
    return status;
}

static flp_status wait_for_device(void)
{
    const flp_driver *driver;
    const flp_status status = flp_driver_get(&driver);

    return status == FLP_OK ? flp_driver_check(driver, driver->context_synchronize(), "cuCtxSynchronize") : status;
}

/* First waits until all work that was enqueued before has ended. Then switches sides, waits for the kernels that began before the switch, and reads and empties
 * the old pair. If this fails after the switch, the old pair's counts are taken the next time but one. */
static flp_status read_device(flp_plan *plan, flp_tally_role role, uint64_t *taken)
{
    const CUdeviceptr tally = flp_tally_at(plan, role);
    const CUdeviceptr pair = tally + offsetof(flp_tally, pair) + plan->tally_side[role] * sizeof(empty[role]);
    flp_status status = wait_for_device();

    if (status == FLP_OK)
        status = turn(tally, &plan->tally_side[role]);
    if (status == FLP_OK)
        status = wait_for_device();
    if (status == FLP_OK)
        status = flp_device_memory_copy(pair, taken, NULL, sizeof(empty[role]));
    return status == FLP_OK ? flp_device_memory_copy(pair, NULL, empty[role], sizeof(empty[role])) : status;
}

static flp_status take_from_device(flp_plan *plan, flp_tally_role role, uint64_t *taken)
{
    unsigned long long cuda_context;
    flp_status status = flp_device_current_id(&cuda_context);

    if (status == FLP_OK)
        status = flp_plan_check_context(plan, cuda_context);
    if (status != FLP_OK)
        return status;
    flp_mutex_lock(&plan->tally_mutex);
    status = read_device(plan, role, taken);
    flp_mutex_unlock(&plan->tally_mutex);
    return status;
}

/* ---- the CPU path, which counts only bad targets ---- */

void flp_tally_add_bad_targets(flp_plan *plan, int64_t count, int64_t first)
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

/* ---- what a caller asks ---- */

/* taken [2]: what was counted since the last call for this role. Nothing is lost or taken twice. */
static flp_status take(flp_plan *plan, flp_tally_role role, uint64_t *taken)
{
    taken[0] = taken[1] = 0;
    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a plan");
    if (flp_plan_on_gpu(plan))
        return take_from_device(plan, role, taken);
    if (role == FLP_TALLY_TARGETS)
        take_from_host(plan, taken);
    return FLP_OK;
}

flp_status flp_plan_target_errors(flp_plan *plan, int64_t *count, int64_t *first_row)
{
    uint64_t taken[2];
    flp_status status = take(plan, FLP_TALLY_TARGETS, taken);

    if (status == FLP_OK && count)
        *count = (int64_t)taken[0];
    if (status == FLP_OK && first_row)
        *first_row = taken[0] ? (int64_t)taken[1] : -1;
    return status;
}

flp_status flp_plan_filter_statistics(flp_plan *plan, int64_t *blocks, int64_t *passed_over)
{
    uint64_t taken[2]; /* blocks kept, and all blocks */
    flp_status status = take(plan, FLP_TALLY_FILTER, taken);

    if (status == FLP_OK && blocks)
        *blocks = (int64_t)taken[1];
    if (status == FLP_OK && passed_over)
        *passed_over = (int64_t)(taken[1] - taken[0]);
    return status;
}

flp_status flp_plan_unmatched_backwards(flp_plan *plan, int64_t *count)
{
    uint64_t taken[2];
    flp_status status = take(plan, FLP_TALLY_UNMATCHED, taken);

    if (status == FLP_OK && count)
        *count = (int64_t)taken[0];
    return status;
}
