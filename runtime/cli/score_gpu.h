/* The device memory of fusedlogp score: weight and bias are copied once, all that has rows is copied chunk by chunk. */
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

/* Makes the primary context of a device current in this thread. wraps 1: ordinal is taken modulo the number of devices. FLP_NO_DRIVER: there is no such
 * device. FLP_CUDA_FAILED. */
flp_status flp_score_gpu_open(const flp_driver *driver, int ordinal, int wraps, flp_score_gpu *gpu);
void flp_score_gpu_close(flp_score_gpu *gpu); /* a zeroed one is allowed */

/* Finds the rows of a chunk: `wanted` or, where that is 0, as many as are useful and as the free memory holds beside weight and bias; never more than the
 * problem has. FLP_OUT_OF_MEMORY: they do not fit; names the bytes needed and free. */
flp_status flp_score_gpu_chunk(const flp_score_gpu *gpu, const flp_score_inputs *inputs, int64_t wanted, int64_t *rows);

/* Allocates the buffers for chunks of `rows` rows, and copies weight and bias. */
flp_status flp_score_gpu_load(flp_score_gpu *gpu, const flp_score_inputs *inputs, const flp_plan *plan, int64_t rows);

/* args: host pointers of one chunk. Copies it to the device, executes, copies the results back and waits. */
flp_status flp_score_gpu_execute(flp_score_gpu *gpu, const flp_score_inputs *inputs, flp_plan *plan, const flp_linear_logp_args *args);
#endif
