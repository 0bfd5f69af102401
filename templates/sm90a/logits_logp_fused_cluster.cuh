// Results and gradients of long rows in one read and one write: the blocks of a cluster take a row, whose logits the copy engine brings to their
// shared memory, where they stay until the gradients are written.
//
// A block has every cluster-th segment of a row, and room for `depth` rows. Its workers sum the segments of one row, write the gradients of the
// row before, and ask at once for what comes into the places that they have emptied: reading and writing never stop. The last warp, the keeper,
// knows the rows to come, and merges a row's sums while the workers are at the next one's. With room for one row only, its gradients follow its
// sums. Segments and merging are logits_logp's, so the results have its bits.
// Config: as for a segment; threads, cluster, slots, records
template <class Config> struct RowRecord {
    LogitsRow<Config> row;
    float scale, target_logit;
    LogitsUpstream upstream;
    LogitsFactors factors; // once its sums have met
};

template <class Config> struct ClusterStorage {
    Vector slots[Config::slots][Segment<Config>::vectors][32];
    SharedStorage<Config, 4> sums; // a block may be two rows ahead of another's merging
    RowRecord<Config> records[Config::records];
    u64 full[Config::slots];                                                    // a segment is there
    u64 known[Config::records], solved[Config::records], done[Config::records]; // a record's row; its factors; no worker needs it any more
    u64 met[4];                                                                 // all sums of a row
};

// Turns are the rows of a cluster, one after the other; `reads` counts those that are read.
template <class Config> struct ClusterRows {
    using Segment = Segment<Config>;
    static constexpr int workers = Config::threads / 32 - 1;
    ClusterStorage<Config> &shared;
    const LogitsLogpParams &params;
    int own;   // segments of a row in this block
    int depth; // rows that there is room for; fewer than records
    int turns;

    __device__ __forceinline__ ClusterRows(ClusterStorage<Config> &shared, const LogitsLogpParams &params)
        : shared(shared), params(params), own((params.segments + Config::cluster - 1) / Config::cluster), depth(min(Config::slots / own, Config::records - 3)),
          turns(((int)params.rows - number(0) + step() - 1) / step()) {}

    __device__ __forceinline__ static int step() { return gridDim.x / Config::cluster; }
    __device__ __forceinline__ static int number(int turn) { return blockIdx.x / Config::cluster + turn * step(); }
    __device__ __forceinline__ static u32 at(const u64 *barriers, int index) { return shared_address(barriers + index); }
    __device__ __forceinline__ RowRecord<Config> &record(int turn) const { return shared.records[turn % Config::records]; }
    __device__ __forceinline__ LogitsSlots sums(int reads) const { return shared_slots(shared.sums, reads & 3, 0); }
    __device__ __forceinline__ void wait(const u64 *barriers, int turn) const {
        mbarrier_wait(at(barriers, turn % Config::records), turn / Config::records & 1);
    }

    __device__ __forceinline__ void start() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < Config::slots; i++) mbarrier_init(at(shared.full, i), 1);
            for (int i = 0; i < Config::records; i++) {
                mbarrier_init(at(shared.known, i), 1);
                mbarrier_init(at(shared.solved, i), 1);
                mbarrier_init(at(shared.done, i), workers);
            }
            for (int i = 0; i < 4; i++) mbarrier_init(at(shared.met, i), Config::cluster == 1 ? params.segments : 1);
            mbarrier_init_fence();
        }
        if constexpr (Config::cluster == 1) block_barrier();
        else cluster_barrier();
    }

    // visit(segment of the row, slot): this warp's, other ones each turn.
    template <class Visit> __device__ __forceinline__ void each(int turn, Visit visit) const {
        int rank = cluster_rank();
        for (int i = (u32)(warp_index() + turn) % workers; i < own; i += workers)
            if (rank + i * Config::cluster < params.segments) visit(rank + i * Config::cluster, turn % depth * own + i);
    }

    // ---- workers

    // Asks for a segment; of a row that is not read the slot counts as full at once. What is no multiple of 16 bytes stays behind.
    __device__ __forceinline__ void request(const LogitsRow<Config> &row, int s, int slot) const {
        if (lane_index() != 0) return;
        int columns = min(params.vocab - s * Segment::columns, Segment::columns), bytes = columns * (int)sizeof(typename Config::element) / 16 * 16;
        if (!row.is_read(params)) bytes = 0;
        mbarrier_arrive_expect(at(shared.full, slot), bytes);
        if (bytes > 0) bulk_load(shared_address(shared.slots[slot]), row.logits(params) + (i64)s * Segment::columns, bytes, at(shared.full, slot));
    }

    // Waits for a segment and takes it up. A vector that the vocabulary ends in comes from memory.
    __device__ __forceinline__ void take(const LogitsRow<Config> &row, int turn, int s, int slot, Segment &segment) const {
        mbarrier_wait(at(shared.full, slot), turn / depth & 1);
        segment.left = min(params.vocab - s * Segment::columns, Segment::columns);
        if (segment.left == Segment::columns) {
#pragma unroll
            for (int j = 0; j < Segment::vectors; j++) segment.data[j] = shared.slots[slot][j][lane_index()];
            return;
        }
        const typename Config::element *from = row.logits(params) + (i64)s * Segment::columns;
#pragma unroll
        for (int j = 0; j < Segment::vectors; j++) {
            int valid = segment.left - Segment::column(j);
            if (valid >= Segment::elements) {
                segment.data[j] = shared.slots[slot][j][lane_index()];
            } else {
                segment.data[j] = load_some(from + Segment::column(j), max(valid, 0));
                Segment::cut(segment.data[j], valid);
            }
        }
    }

    // To all blocks of the cluster.
    __device__ __forceinline__ void share(const LogitsSums &own_sums, int reads, int s) const {
        LogitsSlots to = sums(reads);
        u32 met = at(shared.met, reads & 3);
        if constexpr (Config::cluster == 1) {
            leave<Config>(own_sums, to, s);
            if (lane_index() == 0) mbarrier_arrive(met);
        } else if (lane_index() < Config::cluster) {
            exchange_store(to.partial + s, make_float2(own_sums.origin, own_sums.sum), lane_index(), met);
            if constexpr (Config::has_entropy) exchange_store(to.moment + s, own_sums.moment, lane_index(), met);
        }
    }

    __device__ __forceinline__ void sum_row(int turn, int &reads) const {
        wait(shared.known, turn);
        LogitsRow<Config> row = record(turn).row;
        if (!row.is_read(params)) return;
        LogitsScale scale = {record(turn).scale, params.softcap, params.inverse_softcap};
        each(turn, [&](int s, int slot) {
            Segment segment;
            take(row, turn, s, slot, segment);
            share(segment.statistics(scale, row.logits(params), s, row.target), reads, s);
        });
        reads++;
    }

    // Each segment that is taken up makes room for that of a row to come.
    __device__ __forceinline__ void write_row(int turn) const {
        wait(shared.solved, turn);
        RowRecord<Config> &of = record(turn);
        LogitsRow<Config> row = of.row;
        LogitsScale scale = {of.scale, params.softcap, params.inverse_softcap};
        bool has_next = turn + depth < turns;
        if (has_next) wait(shared.known, turn + depth);
        each(turn, [&](int s, int slot) {
            Segment segment;
            if (row.target >= 0) take(row, turn, s, slot, segment);
            warp_barrier(); // all lanes have theirs
            if (has_next) request(record(turn + depth).row, s, slot);
            if (row.place >= 0) write_gradients(params, row, segment, s, scale, of.factors);
        });
        warp_barrier();
        if (lane_index() == 0) mbarrier_arrive(at(shared.done, turn % Config::records));
    }

    __device__ __forceinline__ void work() const {
        int reads = 0, lag = depth > 1 ? 1 : 0; // the gradients of a row follow the sums of the next one
        for (int turn = 0; turn < min(depth, turns); turn++) {
            wait(shared.known, turn);
            each(turn, [&](int s, int slot) { request(record(turn).row, s, slot); });
        }
        for (int turn = 0; turn < turns + lag; turn++) {
            if (turn < turns) sum_row(turn, reads);
            if (turn >= lag) write_row(turn - lag);
        }
    }

    // ---- the keeper

    // What memory says of a row, a lane the next 32 turns' rows each.
    __device__ __forceinline__ RowRecord<Config> look_up(int turn) const {
        LogitsRow<Config> row(params, number(min(turn, turns - 1)));
        return {row, row.scale(params).scale, to_float(load_target_logit(params, row)), load_upstream(params, row), {0, false, 0, 0, 0}};
    }

    // The lane that has looked the row up puts it where the workers find it.
    __device__ __forceinline__ void publish(const RowRecord<Config> &found, int turn) const {
        if (turn >= Config::records) wait(shared.done, turn - Config::records);
        if (lane_index() == turn % 32) {
            record(turn) = found;
            mbarrier_arrive(at(shared.known, turn % Config::records));
        }
        warp_barrier();
    }

    __device__ __forceinline__ void solve(int turn, int &reads) const {
        RowRecord<Config> &of = record(turn);
        LogitsRow<Config> row = of.row;
        bool is_read = row.is_read(params);
        if (is_read) {
            u32 met = at(shared.met, reads & 3);
            if (Config::cluster > 1 && lane_index() == 0)
                mbarrier_arrive_expect(met, params.segments * (int)(Config::has_entropy ? sizeof(float2) + sizeof(float) : sizeof(float2)));
            mbarrier_wait(met, reads >> 2 & 1);
        }
        LogitsNormaliser normaliser = finish_row(params, row, number(turn), sums(reads), of.target_logit, cluster_rank() == 0);
        warp_barrier(); // all lanes have read the sums, which other blocks may now write over
        if (lane_index() == 0) {
            of.factors = find_factors(params, row, {of.scale, params.softcap, params.inverse_softcap}, of.upstream, normaliser, true, of.target_logit);
            mbarrier_arrive(at(shared.solved, turn % Config::records));
        }
        if (is_read) reads++;
    }

    __device__ __forceinline__ void keep() const {
        constexpr int lead = Config::records - 3; // rows known before they are summed: the workers may still be at the two before
        int reads = 0;
        RowRecord<Config> found = look_up(lane_index());
        for (int turn = -lead; turn < turns; turn++) {
            if (turn >= 0) solve(turn, reads);
            if (turn + lead >= turns) continue;
            if (turn > -lead && (turn + lead) % 32 == 0) found = look_up(turn + lead + lane_index());
            publish(found, turn + lead);
        }
    }
};

template <class Config> __device__ __forceinline__ void logits_logp_fused_cluster(const LogitsLogpParams &params) {
    ClusterRows<Config> rows(shared_storage<Config, ClusterStorage<Config>>(), params);
    rows.start();
    if (warp_index() == ClusterRows<Config>::workers) rows.keep();
    else rows.work();
}
