/* Facts of the devices, the context that is current in this thread, and device memory that the library owns. Such memory can be freed whichever context is
 * current when its owner is destroyed. */
#include "cuda/device.h"

#include <inttypes.h>

#include "base/sized.h"
#include "base/status.h"
#include "cuda/library.h"

static flp_status describe(const flp_driver *driver, CUdevice device, flp_device_facts *facts)
{
    int major = 0, minor = 0;
    size_t bytes = 0;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor },
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts->multiprocessors },
        { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &facts->shared_bytes_per_block },
    };
    flp_status status = flp_driver_check(driver, driver->device_name(facts->name, sizeof(facts->name), device), "cuDeviceGetName");

    for (size_t i = 0; status == FLP_OK && i < sizeof(wanted) / sizeof(wanted[0]); i++)
        status = flp_driver_check(driver, driver->device_attribute(wanted[i].value, wanted[i].attribute, device), "cuDeviceGetAttribute");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->device_total_memory(&bytes, device), "cuDeviceTotalMem");
    facts->compute_capability = 10 * major + minor;
    facts->memory_bytes = (int64_t)bytes;
    return status;
}

static flp_status find_context(const flp_driver *driver, CUcontext *context, unsigned long long *id)
{
    flp_status status = flp_driver_check(driver, driver->context_current(context), "cuCtxGetCurrent");

    if (status != FLP_OK)
        return status;
    if (!*context)
        return flp_status_fail(FLP_WRONG_CONTEXT, "no CUDA context is current in this thread");
    return flp_driver_check(driver, driver->context_id(*context, id), "cuCtxGetId");
}

flp_status flp_device_current_id(unsigned long long *context_id)
{
    const flp_driver *driver;
    CUcontext context;
    flp_status status = flp_driver_get(&driver);

    return status == FLP_OK ? find_context(driver, &context, context_id) : status;
}

flp_status flp_device_current(flp_device *device)
{
    /* Asking the driver for the facts costs microseconds, so those of this thread's last context are kept. */
    static _Thread_local flp_device last;
    static _Thread_local unsigned last_generation;
    const flp_driver *driver;
    flp_device now = { 0 };
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = find_context(driver, &now.context, &now.context_id);
    if (status != FLP_OK)
        return status;
    if (last_generation != flp_library_generation() || last.context_id != now.context_id) {
        status = flp_driver_check(driver, driver->context_device(&now.device), "cuCtxGetDevice");
        if (status == FLP_OK)
            status = describe(driver, now.device, &now.facts);
        if (status != FLP_OK)
            return status;
        last = now;
        last_generation = flp_library_generation();
    }
    *device = last;
    return FLP_OK;
}

int flp_device_enter(const flp_device *owner, CUcontext *left)
{
    const flp_driver *driver;
    unsigned long long id;

    if (flp_driver_get(&driver) != FLP_OK)
        return 0;
    if (driver->context_id(owner->context, &id) != CUDA_SUCCESS || id != owner->context_id)
        return 0;
    return driver->context_current(left) == CUDA_SUCCESS && driver->context_set_current(owner->context) == CUDA_SUCCESS;
}

void flp_device_leave(CUcontext left)
{
    const flp_driver *driver;

    if (flp_driver_get(&driver) == FLP_OK)
        driver->context_set_current(left);
}

flp_status flp_device_synchronize(void)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    return status == FLP_OK ? flp_driver_check(driver, driver->context_synchronize(), "cuCtxSynchronize") : status;
}

flp_status flp_device_is_capturing(CUstream stream, int *capturing)
{
    const flp_driver *driver;
    int capture = CU_STREAM_CAPTURE_STATUS_NONE;
    flp_status status = flp_driver_get(&driver);

    *capturing = 0;
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->stream_is_capturing(stream, &capture), "cuStreamIsCapturing");
    if (status == FLP_OK)
        *capturing = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return status;
}

flp_status flp_device_count(int *count)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    const flp_driver *driver;
    flp_status status;

    if (!count)
        return flp_status_fail(FLP_BAD_ARGUMENT, "count: got NULL, wanted a pointer to int");
    *count = 0;
    flp_status_keep_message(callers_message);
    status = flp_driver_get(&driver);
    if (status == FLP_NO_DRIVER) {
        flp_status_restore_message(callers_message);
        return FLP_OK;
    }
    return status == FLP_OK ? flp_driver_check(driver, driver->device_count(count), "cuDeviceGetCount") : status;
}

flp_status flp_device_describe_sized(int ordinal, flp_device_facts *facts, const flp_sizes *sizes)
{
    flp_device_facts own = { 0 };
    const flp_driver *driver;
    CUdevice device = 0;
    int count = 0;
    flp_status status;

    if (!facts)
        return flp_status_fail(FLP_BAD_ARGUMENT, "facts: got NULL, wanted a pointer to flp_device_facts");
    status = flp_sized_give(&flp_sized_device_facts, sizes, &own, 0, facts);
    if (status == FLP_OK)
        status = flp_driver_get(&driver);
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->device_count(&count), "cuDeviceGetCount");
    if (status != FLP_OK)
        return status;
    if (ordinal < 0 || ordinal >= count)
        return flp_status_fail(FLP_BAD_ARGUMENT, "ordinal: got %d, wanted 0 .. %d", ordinal, count - 1);
    status = flp_driver_check(driver, driver->device_get(&device, ordinal), "cuDeviceGet");
    if (status == FLP_OK)
        status = describe(driver, device, &own);
    return status == FLP_OK ? flp_sized_give(&flp_sized_device_facts, sizes, &own, 0, facts) : status;
}

flp_status flp_device_memory_allocate(int64_t bytes, const char *what, CUdeviceptr *pointer)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    *pointer = 0;
    if (status != FLP_OK)
        return status;
    status = flp_driver_check(driver, driver->memory_allocate(pointer, (size_t)bytes), "cuMemAlloc");
    return status == FLP_OK ? status : flp_status_prefix(status, "%" PRId64 " bytes of device memory for %s", bytes, what);
}

flp_status flp_device_memory_release(const flp_device *owner, CUdeviceptr pointer)
{
    const flp_driver *driver;
    CUcontext left;
    flp_status status;

    if (!pointer || flp_driver_get(&driver) != FLP_OK || !flp_device_enter(owner, &left))
        return FLP_OK;
    status = flp_driver_check(driver, driver->memory_free(pointer), "cuMemFree");
    flp_device_leave(left);
    return status;
}

void flp_device_memory_free(const flp_device *owner, CUdeviceptr pointer)
{
    char message[FLP_STATUS_MESSAGE_BYTES];

    flp_status_keep_message(message);
    flp_device_memory_release(owner, pointer);
    flp_status_restore_message(message);
}

flp_status flp_device_memory_copy(CUdeviceptr device, void *to_host, const void *from_host, size_t bytes)
{
    const flp_driver *driver;
    CUstream stream;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (status != FLP_OK)
        return status;
    if (to_host)
        status = flp_driver_check(driver, driver->copy_to_host(to_host, device, bytes, stream), "cuMemcpyDtoHAsync");
    else
        status = flp_driver_check(driver, driver->copy_to_device(device, from_host, bytes, stream), "cuMemcpyHtoDAsync");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->stream_synchronize(stream), "cuStreamSynchronize");
    driver->stream_destroy(stream);
    return status;
}
