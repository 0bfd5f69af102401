/* Counters that kernels add to on the device, and that the host reads and resets while kernels run. */
#ifndef FLP_PARAMS_TALLY_H
#define FLP_PARAMS_TALLY_H
#include "params/types.h"

/* Double-buffered: kernels add to pair[side]. To take the counts, the host changes `side`, waits until every kernel that may have read the old side has ended,
 * and then owns the old pair. */
typedef struct Tally {
    u64 side; /* 0 or 1 */
    u64 pair[2][2];
} flp_tally;
FLP_PARAMS_BYTES(flp_tally, 40);
#endif
