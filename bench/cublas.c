/* cuBLAS by dlopen, with the few declarations that these products need. */
#include "baselines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cuda/library.h"

/* From cublas_api.h and library_types.h. */
enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUDA_R_32F = 0,
    CUDA_R_16F = 2,
    CUDA_R_16BF = 14,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUBLAS_GEMM_DEFAULT = -1
};

static flp_status check(int result, const char *what)
{
    return result == 0 ? FLP_OK : flp_status_fail(FLP_CUDA_FAILED, "%s: cublasStatus_t %d", what, result);
}

/* libcublas needs libcublasLt, which the loader finds by itself only where its directory is searched. */
static void *open_in(const flp_library_loader *loader, const char *directory, int major)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s%slibcublasLt.so.%d", directory, *directory ? "/" : "", major);
    loader->open(path);
    snprintf(path, sizeof(path), "%s%slibcublas.so.%d", directory, *directory ? "/" : "", major);
    return loader->open(path);
}

static void *open_library(void)
{
    const flp_library_loader *loader = flp_library_loader_get();
    const char *home = getenv("CUDA_HOME");
    char home_directory[4000];
    const char *const directories[] = { "", home_directory, "/usr/local/cuda/lib64" };
    void *library = NULL;

    snprintf(home_directory, sizeof(home_directory), "%s/lib64", home ? home : "");
    for (int major = 13; major >= 12 && !library; major--)
        for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]) && !library; i++)
            library = open_in(loader, directories[i], major);
    return library;
}

flp_status flp_cublas_open(CUstream stream, flp_cublas *cublas)
{
    const flp_library_loader *loader = flp_library_loader_get();
    int (*create)(void **), (*set_stream)(void *, CUstream), (*get_version)(void *, int *);
    flp_status status;

    *cublas = (flp_cublas){ 0 };
    cublas->library = open_library();
    if (!cublas->library)
        return flp_status_fail(FLP_NO_VARIANT, "neither libcublas.so.13 nor libcublas.so.12 was found: %s", loader->error());
    create = (int (*)(void **))loader->symbol(cublas->library, "cublasCreate_v2");
    set_stream = (int (*)(void *, CUstream))loader->symbol(cublas->library, "cublasSetStream_v2");
    get_version = (int (*)(void *, int *))loader->symbol(cublas->library, "cublasGetVersion_v2");
    cublas->destroy = (int (*)(void *))loader->symbol(cublas->library, "cublasDestroy_v2");
    *(void **)&cublas->gemm = loader->symbol(cublas->library, "cublasGemmEx");
    *(void **)&cublas->gemv_f32 = loader->symbol(cublas->library, "cublasSgemvStridedBatched");
    *(void **)&cublas->gemv_bf16 = loader->symbol(cublas->library, "cublasTSTgemvStridedBatched");
    if (!create || !set_stream || !get_version || !cublas->destroy || !cublas->gemm || !cublas->gemv_f32 || !cublas->gemv_bf16)
        return flp_status_fail(FLP_NO_VARIANT, "libcublas lacks a function");
    status = check(create(&cublas->handle), "cublasCreate");
    if (status == FLP_OK)
        status = check(set_stream(cublas->handle, stream), "cublasSetStream");
    return status == FLP_OK ? check(get_version(cublas->handle, &cublas->version), "cublasGetVersion") : status;
}

void flp_cublas_close(flp_cublas *cublas)
{
    if (cublas->handle)
        cublas->destroy(cublas->handle);
    *cublas = (flp_cublas){ 0 };
}

/* ---- products with W; BLAS takes matrices in column-major order */

static int64_t weight_stride(const flp_linear_logp_problem *problem)
{
    return problem->weight_layout == FLP_HIDDEN_VOCAB ? problem->vocab : problem->hidden;
}

int flp_cublas_takes(const flp_linear_logp_problem *problem)
{
    return problem->hidden_stride == problem->hidden && problem->hidden % 8 == 0 && problem->weight_stride == weight_stride(problem) &&
           problem->weight_stride % 8 == 0;
}

/* stride: elements from column to column. */
typedef struct {
    const void *data;
    int64_t stride;
    int transpose;
} operand;

/* result [m, n] = a [m, k] . b [k, n]. */
static flp_status multiply(const flp_cublas *cublas, flp_dtype dtype, int64_t m, int64_t n, int64_t k, operand a, operand b, void *result)
{
    const int type = dtype == FLP_F32 ? CUDA_R_32F : dtype == FLP_F16 ? CUDA_R_16F : CUDA_R_16BF;
    const int compute = dtype == FLP_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const float one = 1, zero = 0;

    return check(cublas->gemm(cublas->handle, a.transpose ? CUBLAS_OP_T : CUBLAS_OP_N, b.transpose ? CUBLAS_OP_T : CUBLAS_OP_N, (int)m, (int)n, (int)k, &one,
                              a.data, type, (int)a.stride, b.data, type, (int)b.stride, &zero, result, type, (int)m, compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}

/* logits^T [V, N] = W [V, D] . hidden^T [D, N]. */
flp_status flp_cublas_logits(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *hidden, const void *weight, void *logits)
{
    const operand w = { weight, weight_stride(problem), problem->weight_layout == FLP_VOCAB_HIDDEN };

    return multiply(cublas, problem->dtype, problem->vocab, problem->rows, problem->hidden, w, (operand){ hidden, problem->hidden, 0 }, logits);
}

/* grad_hidden^T [D, N] = W^T [D, V] . dlogit^T [V, N]. */
flp_status flp_cublas_grad_hidden(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *dlogit, const void *weight, void *grad_hidden)
{
    const operand w = { weight, weight_stride(problem), problem->weight_layout == FLP_HIDDEN_VOCAB };

    return multiply(cublas, problem->dtype, problem->hidden, problem->rows, problem->vocab, w, (operand){ dlogit, problem->vocab, 0 }, grad_hidden);
}

/* In column-major order, a grad_weight that is stored as [V, D] is [D, V] = hidden^T [D, N] . dlogit [N, V]; one that is stored as [D, V] is [V, D] =
 * dlogit^T [V, N] . hidden [N, D]. */
flp_status flp_cublas_grad_weight(const flp_cublas *cublas, const flp_linear_logp_problem *problem, const void *dlogit, const void *hidden, void *grad_weight)
{
    const operand rows_of_hidden = { hidden, problem->hidden, problem->weight_layout == FLP_HIDDEN_VOCAB };
    const operand rows_of_dlogit = { dlogit, problem->vocab, problem->weight_layout == FLP_VOCAB_HIDDEN };

    if (problem->weight_layout == FLP_HIDDEN_VOCAB)
        return multiply(cublas, problem->dtype, problem->vocab, problem->hidden, problem->rows, rows_of_dlogit, rows_of_hidden, grad_weight);
    return multiply(cublas, problem->dtype, problem->hidden, problem->vocab, problem->rows, rows_of_hidden, rows_of_dlogit, grad_weight);
}

/* ---- products with vectors */

/* In column-major order, x is x^T [D, N]. */
flp_status flp_cublas_gemv(const flp_cublas *cublas, flp_dtype dtype, int by_columns, const void *x, const void *vector, void *result, int64_t rows,
                           int64_t columns)
{
    const float one = 1, zero = 0;

    return check((dtype == FLP_F32 ? cublas->gemv_f32 : cublas->gemv_bf16)(cublas->handle, by_columns ? CUBLAS_OP_T : CUBLAS_OP_N, (int)columns, (int)rows,
                                                                           &one, x, (int)columns, 0, vector, 1, 0, &zero, result, 1, 0, 1),
                 "cublas gemvStridedBatched");
}

/* outer^T [D, N] = w [D, 1] . g [N, 1]^T. */
flp_status flp_cublas_outer(const flp_cublas *cublas, flp_dtype dtype, const void *g, const void *w, void *outer, int64_t rows, int64_t columns)
{
    const int type = dtype == FLP_F32 ? CUDA_R_32F : CUDA_R_16BF;
    const float one = 1, zero = 0;

    return check(cublas->gemm(cublas->handle, CUBLAS_OP_N, CUBLAS_OP_T, (int)columns, (int)rows, 1, &one, w, type, (int)columns, g, type, (int)rows, &zero,
                              outer, type, (int)columns, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}
