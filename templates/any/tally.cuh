// Two pairs of words that kernels add to and the host takes: a first word says which of them it is now. The host half, with the reason, is
// runtime/plan/tally.h. KEEP IN STEP: tallies.
// Config: none
__device__ __forceinline__ u64 *tally_now(u64 *tally) { return tally + 1 + 2 * (*(volatile u64 *)tally & 1); }

// Of targets out of range: how many there are, and the first one's row.
__device__ __forceinline__ void tally_bad_target(u64 *tally, i64 row) {
    u64 *now = tally_now(tally);
    atomicAdd(&now[0], 1ull);
    atomicMin(&now[1], (u64)row);
}
