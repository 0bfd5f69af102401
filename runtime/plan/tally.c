/* Counts that kernels add to on the device and the host takes away. */
#include "plan/tally.h"

#include <stddef.h>
#include <string.h>

#include "base/mutex.h"
#include "base/status.h"
#include "plan/device_memory.h"
#include "plan/plan.h"

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

/* From here on kernels that begin add to the other side. */
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

/* What was enqueued before ends first, whether it has begun or not. Then the side that was turned away from is read behind all kernels that began
 * before. Where that fails, it is taken the next time but one. */
static flp_status take(flp_plan *plan, flp_tally_role role, uint64_t *taken)
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

flp_status flp_tally_take(flp_plan *plan, flp_tally_role role, uint64_t *taken)
{
    unsigned long long cuda_context;
    flp_status status = flp_device_current_id(&cuda_context);

    if (status == FLP_OK)
        status = flp_plan_check_context(plan, cuda_context);
    if (status != FLP_OK)
        return status;
    flp_mutex_lock(&plan->tally_mutex);
    status = take(plan, role, taken);
    flp_mutex_unlock(&plan->tally_mutex);
    return status;
}
