// A row's target, and whether it is ignored.
// Config: none

// params: any struct with ignores and ignore_index. Without `ignores` no target is ignored.
template <class Params> __device__ __forceinline__ bool is_ignored(const Params &params, i64 target) { return params.ignores && target == params.ignore_index; }

__device__ __forceinline__ i64 load_target(const void *target, int bytes, i64 row) {
    return bytes == 8 ? ((const i64 *)target)[row] : (i64)((const int *)target)[row];
}
