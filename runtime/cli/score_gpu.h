/* The device memory of fusedlogp score: the weight once, everything that has a row a chunk at a time. */
#ifndef FLP_CLI_SCORE_GPU_H
#define FLP_CLI_SCORE_GPU_H
#include "cli/score.h"
#include "cuda/driver.h"

enum {
    FLP_SCORE_WEIGHT,
    FLP_SCORE_BIAS,
    FLP_SCORE_HIDDEN,
    FLP_SCORE_TARGET,
    FLP_SCORE_LOGP,
    FLP_SCORE_LSE,
    FLP_SCORE_ENTROPY,
    FLP_SCORE_ARGMAX,
    FLP_SCORE_WORKSPACE,
    FLP_SCORE_BUFFERS
};

typedef struct {
    const flp_driver *driver; /* NULL: closed */
    CUdevice device;
    int ordinal;
    CUstream stream;
    CUdeviceptr buffer[FLP_SCORE_BUFFERS];
    size_t workspace_bytes;
} flp_score_gpu;

/* Makes the primary context of a device current in this thread. FLP_NO_DRIVER: there is no such device. FLP_CUDA_FAILED. */
flp_status flp_score_gpu_open(const flp_driver *driver, int ordinal, int wraps, flp_score_gpu *gpu);
void flp_score_gpu_close(flp_score_gpu *gpu); /* a zeroed one is allowed */

/* Rows that the free memory holds beside the weight, at most wanted (0: as many as are useful). FLP_OUT_OF_MEMORY: bytes
 * needed and free. */
flp_status flp_score_gpu_chunk(const flp_score_gpu *gpu, const flp_score_inputs *inputs, int64_t wanted, int64_t *rows);

/* Allocates for chunks of rows and copies weight and bias. */
flp_status flp_score_gpu_load(flp_score_gpu *gpu, const flp_score_inputs *inputs, const flp_plan *plan, int64_t rows);

/* args: host pointers of one chunk; copies, executes, copies back and waits. */
flp_status flp_score_gpu_execute(flp_score_gpu *gpu, const flp_score_inputs *inputs, flp_plan *plan, const flp_linear_logp_args *args);
#endif
