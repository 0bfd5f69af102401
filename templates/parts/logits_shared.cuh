// Shared memory in which a block's warps leave the sums of the segments of its rows, to be merged (logits_merge.cuh).
// Config: shared_bytes, has_entropy, wants_argmax

// sets: how many sets of slots there are, so that one set can be filled while another is still read.
template <class Config, int sets> struct alignas(16) SharedStorage {
    static constexpr int moments = Config::has_entropy ? FLP_LOGITS_SHARED_SEGMENTS : 1, bests = Config::wants_argmax ? FLP_LOGITS_SHARED_SEGMENTS : 1;
    float2 partial[sets][FLP_LOGITS_SHARED_SEGMENTS];
    float2 best[sets][bests];
    float moment[sets][moments];
};

template <class Config, int sets> __device__ __forceinline__ LogitsSlots shared_slots(SharedStorage<Config, sets> &shared, int set, int first) {
    return {shared.partial[set] + first, shared.best[set] + (Config::wants_argmax ? first : 0), shared.moment[set] + (Config::has_entropy ? first : 0)};
}

template <class Config, class Storage> __device__ __forceinline__ Storage &shared_storage() {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    static_assert(sizeof(Storage) == Config::shared_bytes, "gen/kernels/logits_logp_config.lua disagrees");
    return *(Storage *)dynamic_shared;
}
