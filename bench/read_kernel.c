/* A kernel that reads memory once. It stores a word only for one value of their sum, so that the reads cannot be optimized away. */
#include "baselines.h"

enum { BLOCKS_PER_MULTIPROCESSOR = 16, THREADS = 256, LOAD_BYTES = 16 };

static const char source[] =
    "struct __align__(16) Word { unsigned x, y, z, w; };\n"
    "__device__ Word load(const Word *p) {\n"
    "  Word v;\n"
    "  asm volatile(\"ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];\" : \"=r\"(v.x), \"=r\"(v.y), \"=r\"(v.z), \"=r\"(v.w) : \"l\"(p));\n"
    "  return v;\n"
    "}\n"
    "__device__ unsigned fold(Word v) { return v.x ^ v.y ^ v.z ^ v.w; }\n"
    "extern \"C\" __global__ void read(const Word *data, long long count, unsigned *sink) {\n"
    "  long long step = (long long)gridDim.x * blockDim.x, i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  unsigned sum = 0;\n"
    "  for (; i + 3 * step < count; i += 4 * step) {\n"
    "    Word a = load(data + i), b = load(data + i + step), c = load(data + i + 2 * step), d = load(data + i + 3 * step);\n"
    "    sum ^= fold(a) ^ fold(b) ^ fold(c) ^ fold(d);\n"
    "  }\n"
    "  for (; i < count; i += step) sum ^= fold(load(data + i));\n"
    "  if (sum == 0x9e3779b9u) *sink = sum;\n"
    "}\n";

flp_status flp_read_kernel_load(flp_gpu *gpu, flp_read_kernel *kernel)
{
    static const char *const names[] = { "read" };
    flp_status status;

    *kernel = (flp_read_kernel){ 0 };
    status = flp_gpu_kernels_compile(gpu, source, 1, names, &kernel->module, &kernel->function);
    return status == FLP_OK ? flp_gpu_allocate(gpu, sizeof(unsigned), &kernel->sink) : status;
}

void flp_read_kernel_unload(const flp_gpu *gpu, flp_read_kernel *kernel)
{
    if (kernel->module)
        gpu->driver->module_unload(kernel->module);
    *kernel = (flp_read_kernel){ 0 };
}

flp_status flp_read_kernel_launch(const flp_gpu *gpu, const flp_read_kernel *kernel, CUdeviceptr data, int64_t bytes, CUstream stream)
{
    CUdeviceptr sink = kernel->sink;
    int64_t count = bytes / LOAD_BYTES;
    void *parameters[] = { &data, &count, &sink };
    unsigned blocks = (unsigned)gpu->facts.multiprocessors * BLOCKS_PER_MULTIPROCESSOR;

    return flp_gpu_check(gpu, gpu->driver->launch(kernel->function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL), "read");
}
