/* Launches one kernel as its manifest says. */
#include "ops/launch.h"

#include "base/status.h"

_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "the driver reads other structures");

/* A kernel that waits itself for the one before it is launched beside that one's end. */
static CUresult launch_overlapping(const flp_driver *driver, const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters)
{
    CUlaunchAttribute overlap = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                  .value.programmaticStreamSerializationAllowed = 1 };
    const CUlaunchConfig config = { .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1,
                                    .blockDimX = (unsigned)kernel->manifest.threads, .blockDimY = 1, .blockDimZ = 1,
                                    .sharedMemBytes = (unsigned)kernel->manifest.shared_bytes, .hStream = stream,
                                    .attrs = &overlap, .numAttrs = 1 };

    return driver->launch_extended(&config, kernel->function, parameters, NULL);
}

flp_status flp_launch_kernel(const flp_driver *driver, const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters)
{
    const flp_manifest *manifest = &kernel->manifest;
    const int overlaps = manifest->overlaps && driver->launch_extended;
    CUresult result = overlaps ? launch_overlapping(driver, kernel, blocks, stream, parameters)
                               : driver->launch(kernel->function, blocks, 1, 1, (unsigned)manifest->threads, 1, 1,
                                                (unsigned)manifest->shared_bytes, stream, parameters, NULL);

    if (result == CUDA_SUCCESS)
        return FLP_OK;
    return flp_status_prefix(flp_driver_check(driver, result, overlaps ? "cuLaunchKernelEx" : "cuLaunchKernel"), "%s, %u blocks",
                             manifest->variant, blocks);
}
