/* Inputs whose softmax is as peaked as a trained model's, so that a gradient filter has something to pass over. */
#ifndef FLP_BENCH_PEAKED_INPUTS_H
#define FLP_BENCH_PEAKED_INPUTS_H
#include "device/gpu_kernels.h"

/* Their name in the results. */
#define FLP_PEAKED_INPUTS_NAME "peaked: logit v ~ N(-1.25 ln(1 + v), 2), the target's N(2, 2), targets by Zipf's law"

/* A random target for a row: entry v has a probability that falls as 1 / (1 + v). As with a tokenizer's merges, low entries are frequent. */
int64_t flp_peaked_inputs_target(int64_t row, int64_t vocab);

/* Changes hidden ~ N(0, 1) and weight ~ N(0, 1 / D), bf16 and dense, to
 *     weight[v] += m[v] / D
 *     hidden[i] += 1 + (2 - m[t]) n / (n . weight[t]),   n = weight[t] - m[t] / D, t = target[i], int64,
 * so that logit v has the mean m[v] = -1.25 ln(1 + v), and the target's logit the mean 2.
 * At V 128256 the loss is about 1.1; some 115 of a row's probabilities are 2^-12 or more, and 6 % of the blocks of 64 rows by 64 entries hold one. */
flp_status flp_peaked_inputs_make(const flp_gpu *gpu, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight, CUdeviceptr target);
#endif
