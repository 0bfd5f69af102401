/* Inputs of which the softmax is as peaked as a trained model's, so that a gradient filter has something to pass over. */
#ifndef FLP_BENCH_PEAKED_INPUTS_H
#define FLP_BENCH_PEAKED_INPUTS_H
#include "device/gpu_kernels.h"

/* What the results call them. */
#define FLP_PEAKED_INPUTS_NAME "peaked: logit v ~ N(-1.25 ln(1 + v), 2), the target's N(2, 2), targets by Zipf's law"

/* Row i's target: random, entry v with a probability that falls as 1 / (1 + v). As by a tokenizer's merges, low entries are frequent. */
int64_t flp_peaked_inputs_target(int64_t row, int64_t vocab);

/* hidden ~ N(0, 1) and weight ~ N(0, 1 / D), bf16 and dense, become, with means m[v] = -1.25 ln(1 + v) and 2 of the target's logit,
 *     weight[v] += m[v] / D
 *     hidden[i] += 1 + (2 - m[t]) n / (n . weight[t]),   n = weight[t] - m[t] / D, t = target[i], int64.
 * At V 128256 the loss is about 1.1; some 115 of a row's probabilities are 2^-12 or more, and 6 % of the blocks of 64 rows by 64 entries hold one. */
flp_status flp_peaked_inputs_make(const flp_gpu *gpu, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight, CUdeviceptr target);
#endif
