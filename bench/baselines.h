/* What the operators are compared with: cuBLAS's products; reading, writing and copying memory once; an empty launch. */
#ifndef FLP_BENCH_BASELINES_H
#define FLP_BENCH_BASELINES_H
#include "device/gpu_kernels.h"
#include "fusedlogp.h"

#define FLP_CUBLAS_GEMV_PARAMETERS                                                                                                                          \
    void *handle, int transpose, int m, int n, const float *alpha, const void *a, int lda, long long a_step, const void *x, int x_stride, long long x_step, \
        const float *beta, void *y, int y_stride, long long y_step, int batches

typedef struct {
    void *library, *handle;
    int version; /* e.g. 130000 */
    int (*gemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, const void *b,
                int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute_type, int algorithm);
    int (*gemv_f32)(FLP_CUBLAS_GEMV_PARAMETERS);
    int (*gemv_bf16)(FLP_CUBLAS_GEMV_PARAMETERS); /* sums in fp32 */
    int (*destroy)(void *handle);
} flp_cublas;

/* Looks for libcublas.so.13 and .12 where the loader looks, in $CUDA_HOME/lib64 and in the usual place of the toolkit. FLP_NO_VARIANT: not
 * found. The handle works on stream. */
flp_status flp_cublas_open(CUstream stream, flp_cublas *cublas);
void flp_cublas_close(flp_cublas *cublas);

/* 1 where the products below can be computed for a normalized problem: hidden and weight have no gaps, D is a multiple of 8 and, where weight is [D, V], so
 * is V. */
int flp_cublas_takes(const flp_linear_logp_problem *problem);

/* logits [N, V] = hidden . W^T, all of the problem's dtype; FLP_F32 is multiplied as tf32. weight has the problem's layout; fp32 accumulation. Enqueues. */
flp_status flp_cublas_logits(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *hidden, const void *weight, void *logits);

/* grad_hidden [N, D] = dlogit [N, V] . W; grad_weight = dlogit^T . hidden, in the layout of weight; else as flp_cublas_logits. */
flp_status flp_cublas_grad_hidden(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *dlogit, const void *weight, void *grad_hidden);
flp_status flp_cublas_grad_weight(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *dlogit, const void *hidden, void *grad_weight);

/* x [rows, columns], all of dtype, FLP_BF16 or FLP_F32. by_columns: result [rows] = x . vector [columns]; else result [columns] =
 * x^T . vector [rows]. Enqueues. */
flp_status flp_cublas_gemv(const flp_cublas *cublas, flp_dtype dtype, int by_columns, const void *x, const void *vector, void *result, int64_t rows,
                           int64_t columns);

/* outer [rows, columns] = g [rows]^T w [columns], as a product of depth 1, because cuBLAS's ger would read outer too. Enqueues. */
flp_status flp_cublas_outer(const flp_cublas *cublas, flp_dtype dtype, const void *g, const void *w, void *outer, int64_t rows, int64_t columns);

typedef struct {
    CUmodule module;
    CUfunction function;
    CUdeviceptr sink;
} flp_read_kernel;

/* The simplest fast read: 16-byte streaming loads, four in flight in each thread. */
flp_status flp_read_kernel_load(flp_gpu *gpu, flp_read_kernel *kernel);
void flp_read_kernel_unload(const flp_gpu *gpu, flp_read_kernel *kernel);

/* bytes: a multiple of 16. Enqueues. */
flp_status flp_read_kernel_launch(const flp_gpu *gpu, const flp_read_kernel *kernel, CUdeviceptr data, int64_t bytes, CUstream stream);

typedef struct {
    CUmodule module;
    CUfunction function;
} flp_write_kernel;

/* The simplest fast write, of a constant. */
flp_status flp_write_kernel_load(flp_gpu *gpu, flp_write_kernel *kernel);
void flp_write_kernel_unload(const flp_gpu *gpu, flp_write_kernel *kernel);

/* bytes: a multiple of 16. Enqueues. */
flp_status flp_write_kernel_launch(const flp_gpu *gpu, const flp_write_kernel *kernel, CUdeviceptr to, int64_t bytes, CUstream stream);

typedef struct {
    CUmodule module;
    CUfunction copy, nothing;
} flp_copy_kernel;

/* The simplest fast copy, and a kernel that does nothing. */
flp_status flp_copy_kernel_load(flp_gpu *gpu, flp_copy_kernel *kernel);
void flp_copy_kernel_unload(const flp_gpu *gpu, flp_copy_kernel *kernel);

/* bytes: a multiple of 16. These enqueue. */
flp_status flp_copy_kernel_launch(const flp_gpu *gpu, const flp_copy_kernel *kernel, CUdeviceptr from, CUdeviceptr to, int64_t bytes, CUstream stream);
flp_status flp_copy_kernel_launch_nothing(const flp_gpu *gpu, const flp_copy_kernel *kernel, CUstream stream);
#endif
