/* What the forward is held against: cuBLAS's bare logits product, and reading the weight once. */
#ifndef FLP_BENCH_BASELINES_H
#define FLP_BENCH_BASELINES_H
#include "device/gpu_kernels.h"

typedef struct {
    void *library, *handle;
    int version; /* e.g. 130000 */
    int (*gemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda,
                const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute_type, int algorithm);
    int (*destroy)(void *handle);
} flp_cublas;

/* Looks for libcublas.so.13 and .12 where the loader looks, in $CUDA_HOME/lib64 and in the usual place of the toolkit. FLP_NO_VARIANT: not
 * found. The handle works on stream. */
flp_status flp_cublas_open(CUstream stream, flp_cublas *cublas);
void flp_cublas_close(flp_cublas *cublas);

/* logits [rows, vocab] bf16 = hidden [rows, hidden_size] . weight [vocab, hidden_size]^T, both bf16, fp32 accumulation. Enqueues. */
flp_status flp_cublas_logits(const flp_cublas *cublas, const void *hidden, const void *weight, void *logits, int64_t rows,
                             int64_t hidden_size, int64_t vocab);

typedef struct {
    CUmodule module;
    CUfunction function;
    CUdeviceptr sink;
} flp_read_kernel;

/* The plainest fast read: 16-byte streaming loads, four in flight a thread. */
flp_status flp_read_kernel_load(flp_gpu *gpu, flp_read_kernel *kernel);
void flp_read_kernel_unload(const flp_gpu *gpu, flp_read_kernel *kernel);

/* bytes: a multiple of 16. Enqueues. */
flp_status flp_read_kernel_launch(const flp_gpu *gpu, const flp_read_kernel *kernel, CUdeviceptr data, int64_t bytes, CUstream stream);
#endif
