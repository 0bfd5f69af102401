// A warp's next segment: it comes to the registers that hold the one before, once nothing is wanted of that any more.
// Config: as for a segment
template <class Config> struct NextSegment {
    template <int warps> struct Storage {};
    static constexpr bool is_apart = false; // asked for while the one before is in use

    template <int warps> __device__ __forceinline__ explicit NextSegment(Storage<warps> &) {}
    __device__ __forceinline__ void ask(Segment<Config> &segment, const typename Config::element *logits, int index, int vocab) {
        segment.load(logits, index, vocab);
    }
    __device__ __forceinline__ void take(Segment<Config> &, const typename Config::element *, int, int) {}
};
