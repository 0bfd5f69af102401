// Adds to a tally, on the side that it names now.
// Config: none
__device__ __forceinline__ u64 *tally_now(Tally *tally) {
    auto words = (u64 *)tally; // the side, then the pairs
    return words + 1 + 2 * (*(volatile u64 *)words & 1);
}

// Counts targets out of range: how many there are, and the first one's row.
__device__ __forceinline__ void tally_bad_target(Tally *tally, i64 row) {
    u64 *now = tally_now(tally);
    atomicAdd(&now[0], 1ull);
    atomicMin(&now[1], (u64)row);
}
