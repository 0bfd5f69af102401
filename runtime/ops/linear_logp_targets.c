/* FLP_CHECK_TARGETS: looks at every target before anything is enqueued. */
#include <inttypes.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "ops/linear_logp_args.h"

enum { CHUNK_BYTES = 16384 }; /* of targets on the stack at a time */

static int64_t load(const void *targets, int bytes, int64_t row)
{
    return bytes == 4 ? ((const int32_t *)targets)[row] : ((const int64_t *)targets)[row];
}

/* targets: those of rows first .. first + count - 1. */
static flp_status check_chunk(const flp_plan *plan, const flp_linear_logp_args *args, const void *targets, int64_t first,
                              int64_t count)
{
    const int bytes = flp_dtype_bytes(plan->problem.target_dtype);

    for (int64_t i = 0; i < count; i++) {
        int64_t target = load(targets, bytes, i);
        if (target != args->ignore_index && (target < 0 || target >= plan->problem.vocab))
            return flp_status_fail(FLP_BAD_TARGET, "target: row %" PRId64 " got %" PRId64 ", wanted 0 .. %" PRId64
                                   " or the ignore_index %" PRId64, first + i, target, plan->problem.vocab - 1, args->ignore_index);
    }
    return FLP_OK;
}

static flp_status copy_chunk(const flp_driver *driver, const flp_linear_logp_args *args, int64_t offset, void *to, size_t bytes)
{
    flp_status status = flp_driver_check(driver, driver->copy_to_host(to, (CUdeviceptr)(uintptr_t)args->target + (uint64_t)offset,
                                                                      bytes, args->stream), "cuMemcpyDtoHAsync of target");

    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->stream_synchronize(args->stream), "cuStreamSynchronize");
    return status;
}

static flp_status check_on_device(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const int bytes = flp_dtype_bytes(plan->problem.target_dtype);
    const int64_t chunk = CHUNK_BYTES / bytes;
    const flp_driver *driver;
    _Alignas(int64_t) char targets[CHUNK_BYTES];
    int capturing = 0;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = flp_device_is_capturing(args->stream, &capturing);
    if (status == FLP_OK && capturing)
        status = flp_status_fail(FLP_CAPTURING, "flags: FLP_CHECK_TARGETS waits for the stream, which is captured");
    for (int64_t first = 0; status == FLP_OK && first < args->rows; first += chunk) {
        int64_t count = args->rows - first < chunk ? args->rows - first : chunk;
        status = copy_chunk(driver, args, first * bytes, targets, (size_t)(count * bytes));
        if (status == FLP_OK)
            status = check_chunk(plan, args, targets, first, count);
    }
    return status;
}

flp_status flp_linear_logp_args_check_targets(const flp_plan *plan, const flp_linear_logp_args *args)
{
    if (flp_plan_on_gpu(plan))
        return check_on_device(plan, args);
    return check_chunk(plan, args, args->target, 0, args->rows);
}
