/* The kernels that shift random matrices, and Zipf's law. */
#include "peaked_inputs.h"

#include <math.h>

#include "cases.h"

enum { THREADS = 256, TARGET_STREAM = 35 };

/* A block for each row of either matrix. The weight is shifted first, because hidden is shifted along its rows. */
static const char source[] =
    "__device__ float decode(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }\n"
    "__device__ unsigned short encode(float value) {\n"
    "  unsigned bits = __float_as_uint(value);\n"
    "  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
    "}\n"
    "__device__ float mean(long long v) { return -1.25f * logf((float)(v + 1)); }\n"
    "extern \"C\" __global__ void shift_weight(unsigned short *weight, int columns) {\n"
    "  unsigned short *row = weight + (long long)blockIdx.x * columns;\n"
    "  float shift = mean(blockIdx.x) / columns;\n"
    "  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] = encode(decode(row[c]) + shift);\n"
    "}\n"
    "extern \"C\" __global__ void shift_hidden(unsigned short *hidden, const unsigned short *weight, const long long *target, int columns) {\n"
    "  __shared__ float sums[256];\n"
    "  long long t = target[blockIdx.x];\n"
    "  unsigned short *row = hidden + (long long)blockIdx.x * columns;\n"
    "  const unsigned short *along = weight + t * columns;\n"
    "  float sum = 0, shift = mean(t) / columns;\n"
    "  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += (decode(along[c]) - shift) * decode(along[c]);\n"
    "  sums[threadIdx.x] = sum;\n"
    "  for (int half = 128; half > 0; half /= 2) {\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];\n"
    "  }\n"
    "  __syncthreads();\n"
    "  float step = (2 - mean(t)) / sums[0];\n"
    "  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] = encode(decode(row[c]) + 1 + step * (decode(along[c]) - shift));\n"
    "}\n";

/* Zipf's law: ln(1 + v) is uniform from 0 to ln(1 + V). */
int64_t flp_peaked_inputs_target(int64_t row, int64_t vocab)
{
    const double uniform = (double)(flp_case_random(TARGET_STREAM, (uint64_t)row) >> 11) * 0x1p-53;
    const int64_t target = (int64_t)exp(uniform * log((double)vocab + 1)) - 1;

    return target < vocab ? target : vocab - 1;
}

static flp_status shift(const flp_gpu *gpu, const CUfunction functions[2], const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight, CUdeviceptr target)
{
    CUdeviceptr hidden_data = hidden->data, weight_data = weight->data;
    int columns = (int)hidden->columns;
    void *of_weight[] = { &weight_data, &columns }, *of_hidden[] = { &hidden_data, &weight_data, &target, &columns };
    flp_status status =
        flp_gpu_check(gpu, gpu->driver->launch(functions[0], (unsigned)weight->rows, 1, 1, THREADS, 1, 1, 0, NULL, of_weight, NULL), "shift_weight");

    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->launch(functions[1], (unsigned)hidden->rows, 1, 1, THREADS, 1, 1, 0, NULL, of_hidden, NULL), "shift_hidden");
    return status == FLP_OK ? flp_gpu_synchronize(gpu) : status;
}

flp_status flp_peaked_inputs_make(const flp_gpu *gpu, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight, CUdeviceptr target)
{
    static const char *const names[] = { "shift_weight", "shift_hidden" };
    CUmodule module = NULL;
    CUfunction functions[2];
    flp_status status = flp_gpu_kernels_compile(gpu, source, 2, names, &module, functions);

    if (status == FLP_OK)
        status = shift(gpu, functions, hidden, weight, target);
    if (module)
        gpu->driver->module_unload(module);
    return status;
}
