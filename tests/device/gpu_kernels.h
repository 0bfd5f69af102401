/* The device tests' own small kernels: random matrices, which the host can compute, too, and products in fp64. */
#ifndef FLP_TESTS_DEVICE_GPU_KERNELS_H
#define FLP_TESTS_DEVICE_GPU_KERNELS_H
#include "device/gpu.h"

typedef struct {
    CUmodule module;
    CUfunction fill, logits, product;
} flp_gpu_kernels;

/* Compiles the kernels for the device. FLP_NO_NVRTC. Unload with flp_gpu_kernels_unload. */
flp_status flp_gpu_kernels_load(const flp_gpu *gpu, flp_gpu_kernels *kernels);
void flp_gpu_kernels_unload(const flp_gpu *gpu, flp_gpu_kernels *kernels);

/* Compiles source, which holds the extern "C" kernels of names, for the device. */
flp_status flp_gpu_kernels_compile(const flp_gpu *gpu, const char *source, int count, const char *const *names, CUmodule *module, CUfunction *functions);

/* Strides in elements; one of them is 1. */
typedef struct {
    CUdeviceptr data;
    flp_dtype dtype; /* FLP_BF16, FLP_F16 or FLP_F32 */
    int64_t rows, columns, row_stride, column_stride;
} flp_gpu_matrix;

flp_gpu_matrix flp_gpu_matrix_rows(CUdeviceptr data, flp_dtype dtype, int64_t rows, int64_t columns);   /* [rows, columns], dense */
flp_gpu_matrix flp_gpu_matrix_turned(CUdeviceptr data, flp_dtype dtype, int64_t rows, int64_t columns); /* the same, stored as [columns, rows] */

/* Element (r, c) = deviation * flp_case_random_normal(stream, r * columns + c), converted to the dtype as flp_reference_encode does. */
flp_status flp_gpu_kernels_fill(const flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *matrix, unsigned stream, double deviation);

/* logits[i][v] = hidden[row_index[i]] . weight[v] in fp64; logits, row_index: device memory. */
flp_status flp_gpu_kernels_logits(const flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight,
                                  CUdeviceptr row_index, int64_t count, CUdeviceptr logits);

/* Each [count, right.columns] fp64. */
typedef struct {
    CUdeviceptr sums, squares, magnitudes;
} flp_gpu_product;

/* sums[i][c] = sum over k of left[i][k] right[k][c] in fp64; squares and magnitudes: the same sums of the terms' squares and of their absolute values.
 * left: [count, right.rows] fp64. All are device memory. */
flp_status flp_gpu_kernels_product(const flp_gpu *gpu, const flp_gpu_kernels *kernels, CUdeviceptr left, const flp_gpu_matrix *right, int64_t count,
                                   const flp_gpu_product *product);
#endif
