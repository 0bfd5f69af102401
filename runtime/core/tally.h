/* Counters of a plan's executions. On GPU paths kernels count on the device, and the host reads and resets the counts while kernels run (params/tally.h). */
#ifndef FLP_CORE_TALLY_H
#define FLP_CORE_TALLY_H
#include <stdint.h>

#include "fusedlogp.h"
#include "cuda/cuda_abi.h"
#include "params/tally.h"

/* A plan on a GPU path has an array with a flp_tally for each of these. The comments say what its two numbers are. */
typedef enum {
    FLP_TALLY_TARGETS,   /* how many targets were out of range; the first such row, 2^64 - 1 where there was none */
    FLP_TALLY_FILTER,    /* blocks that the gradient filter kept; all blocks */
    FLP_TALLY_UNMATCHED, /* backward executions that did not find their forward; 0 */
    FLP_TALLIES
} flp_tally_role;

/* Allocates a plan's tallies, with empty counts, in the current CUDA context. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_tallies_create(CUdeviceptr *tallies);

/* The device address of a tally of a plan on a GPU path. */
CUdeviceptr flp_tally_at(const flp_plan *plan, flp_tally_role role);

/* Counts bad targets of the CPU path: adds count, and lowers the first row where count > 0. */
void flp_tally_add_bad_targets(flp_plan *plan, int64_t count, int64_t first);
#endif
