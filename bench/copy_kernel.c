/* A kernel that copies memory once, which bounds the speed of an operation that reads and writes as much, and a kernel that does nothing. */
#include "baselines.h"

enum { THREADS = 256, LOAD_BYTES = 16, LOADS = 4 };

/* Short blocks in the order of memory, so that at any time the device works in one narrow window of it. */
static const char source[] = "struct __align__(16) Word { unsigned x, y, z, w; };\n"
                             "extern \"C\" __global__ void copy(const Word *from, Word *to, long long count) {\n"
                             "  long long first = (long long)blockIdx.x * blockDim.x * 4 + threadIdx.x;\n"
                             "  Word v[4];\n"
                             "  for (int i = 0; i < 4; i++)\n"
                             "    if (first + i * blockDim.x < count) v[i] = from[first + i * blockDim.x];\n"
                             "  for (int i = 0; i < 4; i++)\n"
                             "    if (first + i * blockDim.x < count) to[first + i * blockDim.x] = v[i];\n"
                             "}\n"
                             "extern \"C\" __global__ void nothing() {}\n";

flp_status flp_copy_kernel_load(flp_gpu *gpu, flp_copy_kernel *kernel)
{
    static const char *const names[] = { "copy", "nothing" };
    CUfunction functions[2];
    flp_status status;

    *kernel = (flp_copy_kernel){ 0 };
    status = flp_gpu_kernels_compile(gpu, source, 2, names, &kernel->module, functions);
    if (status == FLP_OK) {
        kernel->copy = functions[0];
        kernel->nothing = functions[1];
    }
    return status;
}

void flp_copy_kernel_unload(const flp_gpu *gpu, flp_copy_kernel *kernel)
{
    if (kernel->module)
        gpu->driver->module_unload(kernel->module);
    *kernel = (flp_copy_kernel){ 0 };
}

flp_status flp_copy_kernel_launch(const flp_gpu *gpu, const flp_copy_kernel *kernel, CUdeviceptr from, CUdeviceptr to, int64_t bytes, CUstream stream)
{
    int64_t count = bytes / LOAD_BYTES;
    void *parameters[] = { &from, &to, &count };
    unsigned blocks = (unsigned)((count + THREADS * LOADS - 1) / (THREADS * LOADS));

    return flp_gpu_check(gpu, gpu->driver->launch(kernel->copy, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL), "copy");
}

flp_status flp_copy_kernel_launch_nothing(const flp_gpu *gpu, const flp_copy_kernel *kernel, CUstream stream)
{
    return flp_gpu_check(gpu, gpu->driver->launch(kernel->nothing, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), "nothing");
}
