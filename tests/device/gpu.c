/* Opens device 0 through the library's own driver table; failures are the library's statuses and messages. */
#include "device/gpu.h"

#include "base/status.h"
#include "cuda/library.h"

static flp_status load_functions(flp_gpu *gpu)
{
    const flp_library_loader *loader = flp_library_loader_get();
    void *library = loader->open("libcuda.so.1");

    if (!library)
        return flp_status_fail(FLP_NO_DRIVER, "%s", loader->error());
#define LOAD_SYMBOL(field, exported, parameters)                             \
    gpu->field = (CUresult(*) parameters)loader->symbol(library, #exported); \
    if (!gpu->field)                                                         \
        return flp_status_fail(FLP_NO_DRIVER, "the CUDA driver has no %s", #exported);
    FLP_GPU_FUNCTIONS(LOAD_SYMBOL)
#undef LOAD_SYMBOL
    return FLP_OK;
}

flp_status flp_gpu_open(flp_gpu *gpu)
{
    flp_status status;

    *gpu = (flp_gpu){ 0 };
    status = flp_driver_get(&gpu->driver);
    if (status == FLP_OK)
        status = load_functions(gpu);
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->device_get(&gpu->device, 0), "cuDeviceGet");
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->primary_retain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain");
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->context_set_current(gpu->context), "cuCtxSetCurrent");
    return status == FLP_OK ? flp_device_describe(0, &gpu->facts) : status;
}

void flp_gpu_close(flp_gpu *gpu)
{
    if (!gpu->context)
        return;
    flp_gpu_free_all(gpu);
    gpu->driver->context_set_current(NULL);
    gpu->driver->primary_release(gpu->device);
    *gpu = (flp_gpu){ 0 };
}

flp_status flp_gpu_check(const flp_gpu *gpu, CUresult result, const char *what)
{
    return flp_driver_check(gpu->driver, result, what);
}

flp_status flp_gpu_allocate(flp_gpu *gpu, size_t bytes, CUdeviceptr *pointer)
{
    flp_status status;

    if (gpu->live_count == FLP_GPU_ALLOCATIONS)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "more than %d allocations", FLP_GPU_ALLOCATIONS);
    status = flp_gpu_check(gpu, gpu->driver->memory_allocate(pointer, bytes ? bytes : 1), "cuMemAlloc");
    if (status == FLP_OK)
        gpu->live[gpu->live_count++] = *pointer;
    else
        flp_status_prefix(status, "%zu bytes", bytes);
    return status;
}

void flp_gpu_free_all(flp_gpu *gpu)
{
    gpu->driver->context_synchronize();
    while (gpu->live_count > 0)
        gpu->driver->memory_free(gpu->live[--gpu->live_count]);
}

/* Waits for the legacy default stream, which waits for all blocking streams, and they for it. */
static flp_status finish(const flp_gpu *gpu, CUresult result, const char *what)
{
    flp_status status = flp_gpu_check(gpu, result, what);

    return status == FLP_OK ? flp_gpu_check(gpu, gpu->driver->stream_synchronize(NULL), what) : status;
}

flp_status flp_gpu_upload(const flp_gpu *gpu, CUdeviceptr to, const void *from, size_t bytes)
{
    return bytes ? finish(gpu, gpu->driver->copy_to_device(to, from, bytes, NULL), "copy to the device") : FLP_OK;
}

flp_status flp_gpu_download(const flp_gpu *gpu, void *to, CUdeviceptr from, size_t bytes)
{
    return bytes ? finish(gpu, gpu->driver->copy_to_host(to, from, bytes, NULL), "copy to the host") : FLP_OK;
}

flp_status flp_gpu_set(const flp_gpu *gpu, CUdeviceptr at, unsigned char value, size_t bytes)
{
    return bytes ? finish(gpu, gpu->driver->memory_set(at, value, bytes, NULL), "fill on the device") : FLP_OK;
}

flp_status flp_gpu_synchronize(const flp_gpu *gpu)
{
    return flp_gpu_check(gpu, gpu->driver->context_synchronize(), "cuCtxSynchronize");
}

flp_status flp_gpu_copy_in(flp_gpu *gpu, const void *from, size_t bytes, CUdeviceptr *pointer)
{
    flp_status status = flp_gpu_allocate(gpu, bytes, pointer);

    return status == FLP_OK ? flp_gpu_upload(gpu, *pointer, from, bytes) : status;
}

void *flp_gpu_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}
