/* Counts that kernels add to on the device and the host takes away, while kernels run. */
#ifndef FLP_PLAN_TALLY_H
#define FLP_PLAN_TALLY_H
#include <stdint.h>

#include "fusedlogp.h"
#include "cuda/cuda_abi.h"
#include "params/tally.h"

/* A plan on a GPU path has one of each, one behind the other. */
typedef enum {
    FLP_TALLY_TARGETS,   /* how many targets were out of range; the first such row, 2^64 - 1 where there was none */
    FLP_TALLY_FILTER,    /* blocks that the gradient filter kept; blocks */
    FLP_TALLY_UNMATCHED, /* backward executions that did not find their forward; 0 */
    FLP_TALLIES
} flp_tally_role;

/* All of a plan, empty, in the CUDA context that is current. */
flp_status flp_tallies_create(CUdeviceptr *tallies);

/* Of a plan on a GPU path. */
CUdeviceptr flp_tally_at(const flp_plan *plan, flp_tally_role role);

/* taken [2]: what was added since it was last taken, of which nothing is lost or taken twice. Waits for the device.
 * FLP_WRONG_CONTEXT, FLP_CUDA_FAILED. */
flp_status flp_tally_take(flp_plan *plan, flp_tally_role role, uint64_t *taken);
#endif
