/* FLP_CHECK_TARGETS: checks every target before anything is enqueued. */
#include "core/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/status.h"

enum { CHUNK_BYTES = 16384 }; /* of targets on the stack at a time */

static int64_t load(const void *targets, int bytes, int64_t row)
{
    return bytes == 4 ? ((const int32_t *)targets)[row] : ((const int64_t *)targets)[row];
}

static flp_status refuse(const flp_targets *wanted, int64_t row, int64_t target)
{
    char ignored[64] = "";

    if (wanted->ignores)
        snprintf(ignored, sizeof(ignored), " or the ignore_index %" PRId64, wanted->ignore_index);
    return flp_status_fail(FLP_BAD_TARGET, "target: row %" PRId64 " got %" PRId64 ", wanted 0 .. %" PRId64 "%s", row, target, wanted->vocab - 1, ignored);
}

/* targets: those of rows first .. first + count - 1. */
static flp_status check_chunk(const flp_targets *wanted, const void *targets, int64_t first, int64_t count)
{
    const int bytes = flp_dtype_bytes(wanted->dtype);

    for (int64_t i = 0; i < count; i++) {
        int64_t target = load(targets, bytes, i);
        if ((target < 0 || target >= wanted->vocab) && !(wanted->ignores && target == wanted->ignore_index))
            return refuse(wanted, first + i, target);
    }
    return FLP_OK;
}

static flp_status copy_chunk(const flp_driver *driver, const flp_targets *wanted, int64_t offset, void *to, size_t bytes)
{
    flp_status status = flp_driver_check(driver, driver->copy_to_host(to, (CUdeviceptr)(uintptr_t)wanted->target + (uint64_t)offset, bytes, wanted->stream),
                                         "cuMemcpyDtoHAsync of target");

    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->stream_synchronize(wanted->stream), "cuStreamSynchronize");
    return status;
}

static flp_status check_on_device(const flp_targets *wanted)
{
    const int bytes = flp_dtype_bytes(wanted->dtype);
    const int64_t chunk = CHUNK_BYTES / bytes;
    const flp_driver *driver;
    _Alignas(int64_t) char targets[CHUNK_BYTES];
    int capturing = 0;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = flp_device_is_capturing(wanted->stream, &capturing);
    if (status == FLP_OK && capturing)
        status = flp_status_fail(FLP_CAPTURING, "flags: FLP_CHECK_TARGETS waits for the stream, which is captured");
    for (int64_t first = 0; status == FLP_OK && first < wanted->rows; first += chunk) {
        int64_t count = wanted->rows - first < chunk ? wanted->rows - first : chunk;
        status = copy_chunk(driver, wanted, first * bytes, targets, (size_t)(count * bytes));
        if (status == FLP_OK)
            status = check_chunk(wanted, targets, first, count);
    }
    return status;
}

/* For calls with a row_index. targets: all of them, on the host, because the target of a row may be at any place. */
static flp_status check_indexed(const flp_targets *wanted, const int64_t *row_index, const void *targets)
{
    for (int64_t i = 0; i < wanted->rows; i++) {
        flp_targets one = *wanted;
        flp_status status;
        if (row_index[i] < 0 || row_index[i] >= wanted->target_rows)
            return flp_status_fail(FLP_BAD_TARGET, "row_index: row %" PRId64 " got %" PRId64 ", wanted 0 .. %" PRId64, i, row_index[i],
                                   wanted->target_rows - 1);
        one.rows = 1;
        status = check_chunk(&one, (const char *)targets + row_index[i] * flp_dtype_bytes(wanted->dtype), i, 1);
        if (status != FLP_OK)
            return status;
    }
    return FLP_OK;
}

static flp_status check_indexed_on_device(const flp_targets *wanted)
{
    const size_t index_bytes = (size_t)wanted->rows * sizeof(int64_t);
    const size_t target_bytes = (size_t)(wanted->target_rows * flp_dtype_bytes(wanted->dtype));
    const flp_driver *driver;
    flp_targets index = *wanted;
    char *copy = malloc(index_bytes + target_bytes);
    int capturing = 0;
    flp_status status = copy ? flp_driver_get(&driver) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory to look at the targets");

    index.target = wanted->row_index;
    if (status == FLP_OK)
        status = flp_device_is_capturing(wanted->stream, &capturing);
    if (status == FLP_OK && capturing)
        status = flp_status_fail(FLP_CAPTURING, "flags: FLP_CHECK_TARGETS waits for the stream, which is captured");
    if (status == FLP_OK)
        status = copy_chunk(driver, &index, 0, copy, index_bytes);
    if (status == FLP_OK && target_bytes)
        status = copy_chunk(driver, wanted, 0, copy + index_bytes, target_bytes);
    if (status == FLP_OK)
        status = check_indexed(wanted, (const int64_t *)(void *)copy, copy + index_bytes);
    free(copy);
    return status;
}

flp_status flp_targets_check(const flp_plan *plan, const flp_targets *wanted)
{
    if (wanted->row_index)
        return flp_plan_on_gpu(plan) ? check_indexed_on_device(wanted) : check_indexed(wanted, wanted->row_index, wanted->target);
    return flp_plan_on_gpu(plan) ? check_on_device(wanted) : check_chunk(wanted, wanted->target, 0, wanted->rows);
}
