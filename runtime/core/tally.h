/* What executions of a plan count: on the device, where the host takes it away while kernels run, and on the CPU path. */
#ifndef FLP_CORE_TALLY_H
#define FLP_CORE_TALLY_H
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

/* Where a tally of a plan on a GPU path lies. */
CUdeviceptr flp_tally_at(const flp_plan *plan, flp_tally_role role);

/* The CPU path's bad targets: adds count, lowers the first (where count > 0). */
void flp_tally_add_bad_targets(flp_plan *plan, int64_t count, int64_t first);
#endif
