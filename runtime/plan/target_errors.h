/* A plan's count of out-of-range targets: on a GPU path two device words that the combine kernel updates. */
#ifndef FLP_PLAN_TARGET_ERRORS_H
#define FLP_PLAN_TARGET_ERRORS_H
#include "cuda/device.h"

enum { FLP_TARGET_ERRORS_BYTES = 16 };

/* words[0]: how many, 0; words[1]: the first such row, 2^64 - 1; behind these FLP_TARGET_ERRORS_BYTES two more, 0 and 0, for
 * plan/filter_statistics.h. In the CUDA context that is current. */
flp_status flp_target_errors_create(CUdeviceptr *words);

/* Waits for the device, copies what stands at words and puts initial there. FLP_WRONG_CONTEXT, FLP_CUDA_FAILED. */
flp_status flp_plan_take_words(const flp_plan *plan, CUdeviceptr words, const void *initial, void *taken, size_t bytes);

/* The CPU path's half: adds count, lowers first (where count > 0). */
void flp_target_errors_add(flp_plan *plan, int64_t count, int64_t first);
#endif
