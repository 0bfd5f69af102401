/* A plan's count of out-of-range targets: on a GPU path two device words that the combine kernel updates. */
#ifndef FLP_PLAN_TARGET_ERRORS_H
#define FLP_PLAN_TARGET_ERRORS_H
#include "cuda/device.h"

/* words[0]: how many, 0; words[1]: the first such row, 2^64 - 1. In the CUDA context that is current. */
flp_status flp_target_errors_create(CUdeviceptr *words);

/* The CPU path's half: adds count, lowers first (where count > 0). */
void flp_target_errors_add(flp_plan *plan, int64_t count, int64_t first);
#endif
