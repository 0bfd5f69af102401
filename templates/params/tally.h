/* Counts that kernels add to on the device and the host takes away, while kernels run. */
#ifndef FLP_PARAMS_TALLY_H
#define FLP_PARAMS_TALLY_H
#include "params/types.h"

/* Kernels add to pair[side]. To take it, the host names the other side, waits until every kernel that may have read the old name is through, and
 * then has the pair to itself. */
typedef struct Tally {
    u64 side; /* 0 or 1 */
    u64 pair[2][2];
} flp_tally;
FLP_PARAMS_BYTES(flp_tally, 40);
#endif
