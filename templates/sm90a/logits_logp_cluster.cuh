// logp, lse, entropy and argmax of few rows of logits in one launch: the blocks of a cluster share a row.
//
// Each warp of the cluster sums up its segments and sends the sums to the shared memory of the cluster's first block, whose first warp merges them. Nothing
// goes through global memory: there is no scratch, nothing to reset, and no second kernel to wait for. Segments and merging are logits_logp's, so the results
// have the same bits.
// Config: those of logits_segment; threads, cluster
template <class Config> struct ClusterSums {
    SharedStorage<Config, 1> sums;
    u64 met; // mbarrier: all sums of the row have arrived
};

template <class Config> struct SharedRow {
    using Segment = Segment<Config>;
    static constexpr int warps = Config::threads / 32, stride = warps * Config::cluster;
    // Bytes that send() stores for a segment.
    static constexpr int sum_bytes = sizeof(float2) + (Config::has_entropy ? sizeof(float) : 0) + (Config::wants_argmax ? sizeof(float2) : 0);
    ClusterSums<Config> &shared;
    const LogitsLogpParams &params;
    LogitsRow<Config> row;

    __device__ __forceinline__ SharedRow(ClusterSums<Config> &shared, const LogitsLogpParams &params)
        : shared(shared), params(params), row(LogitsRow<Config>::find(params, number())) {}

    __device__ __forceinline__ static int number() { return blockIdx.x / Config::cluster; }
    __device__ __forceinline__ u32 met() const { return shared_address(&shared.met); }
    // An ignored row is summed up too, which costs less than waiting for its target.
    __device__ __forceinline__ int segments() const { return row.source < 0 ? 0 : params.segments; }

    __device__ __forceinline__ void load(Segment &segment, int s) const { segment.load(row.logits(params), s, params.vocab); }

    // All blocks initialise the mbarrier, but only the first block's expects the sums' bytes and is waited for.
    __device__ __forceinline__ void start() const {
        if (threadIdx.x == 0) {
            mbarrier_init(met(), 1);
            mbarrier_init_fence();
            mbarrier_arrive_expect(met(), cluster_rank() == 0 ? segments() * sum_bytes : 0);
        }
        cluster_barrier();
    }

    __device__ __forceinline__ void send(const LogitsSums &sums, int s) const {
        if (lane_index() != 0) return;
        LogitsSlots to = shared_slots(shared.sums, 0, 0);
        exchange_store(to.partial + s, make_float2(sums.origin, sums.sum), 0, met());
        if constexpr (Config::has_entropy) exchange_store(to.moment + s, sums.moment, 0, met());
        if constexpr (Config::wants_argmax) exchange_store(to.best + s, make_float2(sums.best, __int_as_float(sums.best_index)), 0, met());
    }

    __device__ __forceinline__ void finish(typename Config::element target_logit) const {
        if (segments() > 0) mbarrier_wait(met(), 0);
        finish_row(params, row, number(), shared_slots(shared.sums, 0, 0), to_float(target_logit), true);
    }
};

// Neighbouring segments go to different blocks, so that all multiprocessors read equally much. The first loads are in flight while the cluster synchronises.
template <class Config> __device__ __forceinline__ void logits_logp_cluster(const LogitsLogpParams &params) {
    SharedRow<Config> shared(shared_storage<Config, ClusterSums<Config>>(), params);
    int s = warp_index() * Config::cluster + cluster_rank(), segments = shared.segments();
    bool finishes = s == 0;
    typename SharedRow<Config>::Segment segment;
    allow_next_kernel();
    auto words = shared.row.load_target(params);
    if (s < segments) shared.load(segment, s);
    shared.start();
    shared.row.take_target(params, words);
    typename Config::element target_logit = {};
    if (finishes) target_logit = load_target_logit(params, shared.row);
    while (s < segments) {
        LogitsSums sums = segment.statistics(shared.row.scale(params), shared.row.logits(params), s, shared.row.target);
        int next = s + SharedRow<Config>::stride;
        if (next < segments) shared.load(segment, next);
        shared.send(sums, s);
        s = next;
    }
    if (finishes) shared.finish(target_logit);
}
