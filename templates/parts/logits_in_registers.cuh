// Prefetch of a warp's next segment directly into the registers of the current one, once that one is no longer needed. (Its counterpart with a buffer in
// shared memory is sm90a/logits_in_stages.cuh.)
// Config: those of logits_segment
template <class Config> struct NextSegment {
    template <int warps> struct Storage {};
    static constexpr bool is_apart = false; // true: the next segment has a buffer of its own, so it can be requested while the current one is in use

    template <int warps> __device__ __forceinline__ explicit NextSegment(Storage<warps> &) {}
    __device__ __forceinline__ void ask(Segment<Config> &segment, const typename Config::element *logits, int index, int vocab) {
        segment.load(logits, index, vocab);
    }
    __device__ __forceinline__ void take(Segment<Config> &, const typename Config::element *, int, int) {}
};
