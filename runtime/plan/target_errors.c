/* A plan's count of out-of-range targets. */
#include "plan/target_errors.h"

#include "base/status.h"
#include "plan/device_memory.h"
#include "plan/plan.h"

static const uint64_t none[4] = { 0, UINT64_MAX, 0, 0 };

flp_status flp_target_errors_create(CUdeviceptr *words)
{
    flp_device device;
    flp_status status = flp_device_current(&device);

    *words = 0;
    if (status == FLP_OK)
        status = flp_device_memory_allocate(sizeof(none), "a plan's target errors", words);
    if (status == FLP_OK)
        status = flp_device_memory_copy(*words, NULL, none, sizeof(none));
    if (status != FLP_OK) {
        flp_device_memory_free(&device, *words);
        *words = 0;
    }
    return status;
}

void flp_target_errors_add(flp_plan *plan, int64_t count, int64_t first)
{
    if (count == 0)
        return;
    pthread_mutex_lock(&plan->bad_mutex);
    if (plan->bad_count == 0 || first < plan->bad_first)
        plan->bad_first = first;
    plan->bad_count += count;
    pthread_mutex_unlock(&plan->bad_mutex);
}

static void take_from_host(flp_plan *plan, int64_t *count, int64_t *first)
{
    pthread_mutex_lock(&plan->bad_mutex);
    *count = plan->bad_count;
    *first = plan->bad_first;
    plan->bad_count = 0;
    pthread_mutex_unlock(&plan->bad_mutex);
}

flp_status flp_plan_take_words(const flp_plan *plan, CUdeviceptr words, const void *initial, void *taken, size_t bytes)
{
    const flp_driver *driver;
    unsigned long long cuda_context;
    flp_status status = flp_device_current_id(&cuda_context);

    if (status == FLP_OK)
        status = flp_plan_check_context(plan, cuda_context);
    if (status == FLP_OK)
        status = flp_driver_get(&driver);
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->context_synchronize(), "cuCtxSynchronize");
    if (status == FLP_OK)
        status = flp_device_memory_copy(words, taken, NULL, bytes);
    return status == FLP_OK ? flp_device_memory_copy(words, NULL, initial, bytes) : status;
}

static flp_status take_from_device(flp_plan *plan, int64_t *count, int64_t *first)
{
    uint64_t words[2];
    flp_status status = flp_plan_take_words(plan, plan->target_errors, none, words, FLP_TARGET_ERRORS_BYTES);

    if (status != FLP_OK)
        return status;
    *count = (int64_t)words[0];
    *first = (int64_t)words[1];
    return FLP_OK;
}

flp_status flp_plan_target_errors(flp_plan *plan, int64_t *count, int64_t *first_row)
{
    int64_t found = 0, first = -1;
    flp_status status = FLP_OK;

    if (!plan)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got NULL, wanted a plan");
    if (flp_plan_on_gpu(plan))
        status = take_from_device(plan, &found, &first);
    else
        take_from_host(plan, &found, &first);
    if (status != FLP_OK)
        return status;
    if (count)
        *count = found;
    if (first_row)
        *first_row = found ? first : -1;
    return FLP_OK;
}
