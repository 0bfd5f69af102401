/* A kernel that writes memory once, which bounds the speed of an operation that writes as much. */
#include "baselines.h"

enum { THREADS = 256, STORE_BYTES = 16 };

/* One store in each thread, in the order of memory: the fastest of the simple ways. Blocks that live longer write 5 to 10 % slower. */
static const char source[] = "struct __align__(16) Word { unsigned x, y, z, w; };\n"
                             "extern \"C\" __global__ void write(Word *to, long long count, unsigned value) {\n"
                             "  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "  Word v = {value, value, value, value};\n"
                             "  if (i < count) to[i] = v;\n"
                             "}\n";

flp_status flp_write_kernel_load(flp_gpu *gpu, flp_write_kernel *kernel)
{
    static const char *const names[] = { "write" };

    *kernel = (flp_write_kernel){ 0 };
    return flp_gpu_kernels_compile(gpu, source, 1, names, &kernel->module, &kernel->function);
}

void flp_write_kernel_unload(const flp_gpu *gpu, flp_write_kernel *kernel)
{
    if (kernel->module)
        gpu->driver->module_unload(kernel->module);
    *kernel = (flp_write_kernel){ 0 };
}

flp_status flp_write_kernel_launch(const flp_gpu *gpu, const flp_write_kernel *kernel, CUdeviceptr to, int64_t bytes, CUstream stream)
{
    int64_t count = bytes / STORE_BYTES;
    unsigned value = 0x3f803f80; /* 1, in bf16 and nearly in fp32 */
    void *parameters[] = { &to, &count, &value };
    unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);

    return flp_gpu_check(gpu, gpu->driver->launch(kernel->function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL), "write");
}
