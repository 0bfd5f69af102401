// logits_logp's results and gradients in one read and one write: each team of a block's warps takes a row.
//
// A row's logits stay on the chip while its sums are merged: of a warp's segments, the last one in registers and the first ones in shared memory. If a warp
// has more segments than these hold, the others are read a second time, from the L2, where the few rows in progress fit. Segments and merging are
// logits_logp's, so the results have the same bits.
// Config: those of logits_segment; threads, kept_segments
template <class Config> struct FusedStorage {
    SharedStorage<Config, 2> sums; // double-buffered: a team may begin its next row while another is still merging
    Vector kept[Config::threads / 32][Config::kept_segments][Segment<Config>::vectors][32];
};

// A warp's segments of one row: first, first + stride, ...
template <class Config> struct OwnSegments {
    using Segment = Segment<Config>;
    FusedStorage<Config> &shared;
    int first, stride;
    Segment segment;

    __device__ __forceinline__ OwnSegments(FusedStorage<Config> &shared, int first, int stride) : shared(shared), first(first), stride(stride) {}
    // The warp's last segment; negative: it has none.
    __device__ __forceinline__ int last(const LogitsLogpParams &params) const {
        return first < params.segments ? first + (params.segments - 1 - first) / stride * stride : -1;
    }

    __device__ __forceinline__ void load(const LogitsLogpParams &params, const LogitsRow<Config> &row, int s) {
        segment.load(row.logits(params), s, params.vocab);
    }
    // Called after segment s has been summed up: moves it to shared memory, unless it is the warp's last, which stays in registers, or there is no room.
    __device__ __forceinline__ void keep(const LogitsLogpParams &params, int s) {
        int place = (s - first) / stride;
        if (s + stride >= params.segments || place >= Config::kept_segments) return;
#pragma unroll
        for (int j = 0; j < Segment::vectors; j++) shared.kept[warp_index()][place][j][lane_index()] = segment.data[j];
    }
    // Brings segment s back to registers, from shared memory or, if there was no room, from memory.
    __device__ __forceinline__ void bring_back(const LogitsLogpParams &params, const LogitsRow<Config> &row, int s) {
        int place = (s - first) / stride;
        if (s + stride >= params.segments) return;
        if (place >= Config::kept_segments) {
            load(params, row, s);
            segment.put_together();
            return;
        }
#pragma unroll
        for (int j = 0; j < Segment::vectors; j++) segment.data[j] = shared.kept[warp_index()][place][j][lane_index()];
    }
};

template <class Config> __device__ __forceinline__ void logits_logp_fused(const LogitsLogpParams &params) {
    auto &shared = shared_storage<Config, FusedStorage<Config>>();
    using Segment = Segment<Config>;
    constexpr int warps = Config::threads / 32;
    int stride = 1 << params.team_log2, teams = warps / stride;
    int team = warp_index() / stride, member = warp_index() % stride, set = 0;
    for (int base = blockIdx.x * teams; base < params.rows; base += gridDim.x * teams, set ^= 1) {
        bool is_row = base + team < params.rows;
        int number = is_row ? base + team : 0;
        LogitsRow<Config> row(params, number);
        LogitsScale scale = row.scale(params);
        float target_logit = is_row ? to_float(load_target_logit(params, row)) : 0;
        OwnSegments<Config> segments(shared, member, stride);
        if (is_row && row.is_read(params))
            for (int s = member; s < params.segments; s += stride) {
                segments.load(params, row, s);
                leave<Config>(segments.segment.statistics(scale, row.logits(params), s, row.target), shared_slots(shared.sums, set, team * params.segments), s);
                segments.keep(params, s);
            }
        if (stride > 1) block_barrier();
        else warp_barrier();
        if (!is_row) continue;
        LogitsNormaliser normaliser = finish_row(params, row, number, shared_slots(shared.sums, set, team * params.segments), target_logit, member == 0);
        if (row.place < 0) continue;
        LogitsFactors factors = find_factors(params, row, scale, load_upstream(params, row), normaliser, true, target_logit);
        for (int s = segments.last(params); s >= 0; s -= stride) {
            if (row.target >= 0) segments.bring_back(params, row, s);
            write_gradients(params, row, segments.segment, s * Segment::columns, scale, factors);
        }
    }
}
