/* The source of the tests' own kernels, and their launches. */
#include "base/dtype.h"
#include "device/gpu_kernels.h"

#include <stdio.h>

#include "base/status.h"
#include "cuda/nvrtc.h"

enum { FILL_BLOCKS = 2048, FILL_THREADS = 256, LOGITS_TILE = 16, PRODUCT_THREADS = 64 };

/* random_bits and random_normal are the same as in tests/case_data.c (test_gpu_kernels compares them). The product's tile is a square with sides of
 * LOGITS_TILE, and its sum runs over k in order. */
static const char source[] = "typedef unsigned long long u64;\n"
                             "enum { BF16 = 1, F16, F32 };\n" /* flp_dtype */
                             "struct Matrix { void *data; long long rows, columns, row_stride, column_stride; long long dtype; };\n"
                             "__device__ u64 random_bits(u64 stream, u64 index) {\n"
                             "  u64 x = stream << 56 ^ index;\n"
                             "  for (int round = 0; round < 2; round++) {\n"
                             "    x += 0x9e3779b97f4a7c15ull;\n"
                             "    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;\n"
                             "    x = (x ^ x >> 27) * 0x94d049bb133111ebull;\n"
                             "    x ^= x >> 31;\n"
                             "  }\n"
                             "  return x;\n"
                             "}\n"
                             "__device__ double random_normal(u64 stream, u64 index) {\n"
                             "  u64 bits = random_bits(stream, index);\n"
                             "  long long sum = (long long)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));\n"
                             "  return (double)(sum - 2 * 65535) / 37837.23;\n"
                             "}\n"
                             "__device__ unsigned short half_bits(float x) {\n"
                             "  unsigned short bits;\n"
                             "  asm(\"cvt.rz.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
                             "  return bits;\n"
                             "}\n"
                             "__device__ float half_value(unsigned short bits) {\n"
                             "  float x;\n"
                             "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits));\n"
                             "  return x;\n"
                             "}\n"
                             "extern \"C\" __global__ void fill(Matrix m, u64 stream, double deviation) {\n"
                             "  long long count = m.rows * m.columns, step = (long long)gridDim.x * blockDim.x;\n"
                             "  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {\n"
                             "    bool by_rows = m.column_stride == 1;\n"
                             "    long long r = by_rows ? i / m.columns : i % m.rows, c = by_rows ? i % m.columns : i / m.rows;\n"
                             "    float value = (float)(deviation * random_normal(stream, (u64)(r * m.columns + c)));\n"
                             "    long long at = r * m.row_stride + c * m.column_stride;\n"
                             "    if (m.dtype == F32) ((float *)m.data)[at] = value;\n"
                             "    else if (m.dtype == F16) ((unsigned short *)m.data)[at] = half_bits(value);\n"
                             "    else ((unsigned short *)m.data)[at] = (unsigned short)(__float_as_uint(value) >> 16);\n"
                             "  }\n"
                             "}\n"
                             "__device__ double element(const Matrix &m, long long r, long long c) {\n"
                             "  if (r >= m.rows || c >= m.columns) return 0;\n"
                             "  long long at = r * m.row_stride + c * m.column_stride;\n"
                             "  if (m.dtype == F32) return ((const float *)m.data)[at];\n"
                             "  if (m.dtype == F16) return half_value(((const unsigned short *)m.data)[at]);\n"
                             "  return __uint_as_float((unsigned)((const unsigned short *)m.data)[at] << 16);\n"
                             "}\n"
                             "extern \"C\" __global__ void logits(Matrix hidden, Matrix weight, const long long *row_index, long long count, double *out) {\n"
                             "  __shared__ double h[16][17], w[16][17];\n"
                             "  int x = threadIdx.x, y = threadIdx.y;\n"
                             "  long long i = (long long)blockIdx.y * 16 + y, v = (long long)blockIdx.x * 16 + x, first = (long long)blockIdx.x * 16;\n"
                             "  bool turned = weight.column_stride != 1;\n"
                             "  double sum = 0;\n"
                             "  for (long long k = 0; k < hidden.columns; k += 16) {\n"
                             "    h[y][x] = i < count ? element(hidden, row_index[i], k + x) : 0;\n"
                             "    if (turned) w[x][y] = element(weight, first + x, k + y);\n"
                             "    else w[y][x] = element(weight, first + y, k + x);\n"
                             "    __syncthreads();\n"
                             "    for (int j = 0; j < 16; j++) sum += h[y][j] * w[x][j];\n"
                             "    __syncthreads();\n"
                             "  }\n"
                             "  if (i < count && v < weight.rows) out[i * weight.rows + v] = sum;\n"
                             "}\n"
                             "extern \"C\" __global__ void product(const double *left, Matrix right, double *sums, double *squares, double *magnitudes) {\n"
                             "  long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;\n"
                             "  if (c >= right.columns) return;\n"
                             "  double sum = 0, square = 0, magnitude = 0;\n"
                             "  for (long long k = 0; k < right.rows; k++) {\n"
                             "    double term = left[i * right.rows + k] * element(right, k, c);\n"
                             "    sum += term;\n"
                             "    square += term * term;\n"
                             "    magnitude += fabs(term);\n"
                             "  }\n"
                             "  sums[i * right.columns + c] = sum;\n"
                             "  squares[i * right.columns + c] = square;\n"
                             "  magnitudes[i * right.columns + c] = magnitude;\n"
                             "}\n";

_Static_assert(FLP_BF16 == 1 && FLP_F16 == 2 && FLP_F32 == 3, "the kernels' enum");

/* A matrix as the kernels take it. */
typedef struct {
    CUdeviceptr data;
    int64_t rows, columns, row_stride, column_stride, dtype;
} matrix_parameter;

static matrix_parameter parameter_of(const flp_gpu_matrix *m)
{
    return (matrix_parameter){ m->data, m->rows, m->columns, m->row_stride, m->column_stride, m->dtype };
}

flp_gpu_matrix flp_gpu_matrix_rows(CUdeviceptr data, flp_dtype dtype, int64_t rows, int64_t columns)
{
    return (flp_gpu_matrix){ data, dtype, rows, columns, columns, 1 };
}

flp_gpu_matrix flp_gpu_matrix_turned(CUdeviceptr data, flp_dtype dtype, int64_t rows, int64_t columns)
{
    return (flp_gpu_matrix){ data, dtype, rows, columns, 1, rows };
}

flp_status flp_gpu_kernels_compile(const flp_gpu *gpu, const char *text, int count, const char *const *names, CUmodule *module, CUfunction *functions)
{
    static const char *const options[] = { "-std=c++17", "-default-device", NULL };
    char arch[16];
    flp_nvrtc_output output;
    flp_status status;

    snprintf(arch, sizeof(arch), "sm_%d", gpu->facts.compute_capability);
    status = flp_nvrtc_compile(text, names[0], arch, options, &output);
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->module_load(module, output.cubin), "cuModuleLoadData");
    flp_nvrtc_output_free(&output);
    for (int i = 0; i < count && status == FLP_OK; i++)
        status = flp_gpu_check(gpu, gpu->driver->module_function(&functions[i], *module, names[i]), names[i]);
    return status;
}

flp_status flp_gpu_kernels_load(const flp_gpu *gpu, flp_gpu_kernels *kernels)
{
    static const char *const names[] = { "fill", "logits", "product" };
    CUfunction functions[3] = { 0 };
    flp_status status;

    *kernels = (flp_gpu_kernels){ 0 };
    status = flp_gpu_kernels_compile(gpu, source, 3, names, &kernels->module, functions);
    kernels->fill = functions[0];
    kernels->logits = functions[1];
    kernels->product = functions[2];
    return status;
}

void flp_gpu_kernels_unload(const flp_gpu *gpu, flp_gpu_kernels *kernels)
{
    if (kernels->module)
        gpu->driver->module_unload(kernels->module);
    *kernels = (flp_gpu_kernels){ 0 };
}

static flp_status check_dtype(const flp_gpu_matrix *matrix)
{
    if (matrix->dtype == FLP_BF16 || matrix->dtype == FLP_F16 || matrix->dtype == FLP_F32)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "dtype: got %s, wanted " FLP_DTYPE_FLOATS, flp_dtype_name(matrix->dtype));
}

flp_status flp_gpu_kernels_fill(const flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *matrix, unsigned stream, double deviation)
{
    matrix_parameter parameter = parameter_of(matrix);
    unsigned long long number = stream;
    void *parameters[] = { &parameter, &number, &deviation };
    flp_status status = check_dtype(matrix);

    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->launch(kernels->fill, FILL_BLOCKS, 1, 1, FILL_THREADS, 1, 1, 0, NULL, parameters, NULL), "fill");
    return status == FLP_OK ? flp_gpu_synchronize(gpu) : status;
}

flp_status flp_gpu_kernels_logits(const flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight,
                                  CUdeviceptr row_index, int64_t count, CUdeviceptr logits)
{
    matrix_parameter h = parameter_of(hidden), w = parameter_of(weight);
    void *parameters[] = { &h, &w, &row_index, &count, &logits };
    unsigned blocks_v = (unsigned)((weight->rows + LOGITS_TILE - 1) / LOGITS_TILE);
    unsigned blocks_i = (unsigned)((count + LOGITS_TILE - 1) / LOGITS_TILE);
    flp_status status = check_dtype(hidden);

    if (status == FLP_OK)
        status = check_dtype(weight);
    if (status == FLP_OK)
        status =
            flp_gpu_check(gpu, gpu->driver->launch(kernels->logits, blocks_v, blocks_i, 1, LOGITS_TILE, LOGITS_TILE, 1, 0, NULL, parameters, NULL), "logits");
    return status == FLP_OK ? flp_gpu_synchronize(gpu) : status;
}

flp_status flp_gpu_kernels_product(const flp_gpu *gpu, const flp_gpu_kernels *kernels, CUdeviceptr left, const flp_gpu_matrix *right, int64_t count,
                                   const flp_gpu_product *product)
{
    matrix_parameter r = parameter_of(right);
    flp_gpu_product out = *product;
    void *parameters[] = { &left, &r, &out.sums, &out.squares, &out.magnitudes };
    const unsigned blocks = (unsigned)((right->columns + PRODUCT_THREADS - 1) / PRODUCT_THREADS);
    flp_status status = check_dtype(right);

    if (status == FLP_OK)
        status =
            flp_gpu_check(gpu, gpu->driver->launch(kernels->product, blocks, (unsigned)count, 1, PRODUCT_THREADS, 1, 1, 0, NULL, parameters, NULL), "product");
    return status == FLP_OK ? flp_gpu_synchronize(gpu) : status;
}
