// Adds to a tally (params/tally.h), on the side that is current.
// Config: none
__device__ __forceinline__ u64 *tally_now(Tally *tally) {
    auto words = (u64 *)tally; // the side, then the pairs
    return words + 1 + 2 * (*(volatile u64 *)words & 1);
}

// Counts a target that is out of range: now[0] is the number of these, now[1] the first one's row.
__device__ __forceinline__ void tally_bad_target(Tally *tally, i64 row) {
    u64 *now = tally_now(tally);
    atomicAdd(&now[0], 1ull);
    atomicMin(&now[1], (u64)row);
}
