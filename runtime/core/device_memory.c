/* Device memory that the library owns, and freeing it from wherever its owner is destroyed. */
#include "core/device_memory.h"

#include <inttypes.h>

#include "base/status.h"

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

void flp_device_memory_free(const flp_device *owner, CUdeviceptr pointer)
{
    const flp_driver *driver;
    CUcontext left;

    if (!pointer || flp_driver_get(&driver) != FLP_OK || !flp_device_enter(owner, &left))
        return;
    driver->memory_free(pointer);
    flp_device_leave(left);
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
