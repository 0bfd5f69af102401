// logits_logp's results and gradients of long rows in one read and one write: the blocks of a cluster share a row, whose logits TMA copies to their shared
// memory, where they stay until the gradients are written.
//
// A block has every cluster-th segment of a row, and slots for the segments of `depth` rows. All of its warps but the last are workers: they sum up the
// segments of one row, then write the gradients of the row before, and request the next segment for each slot as soon as they have emptied it, so that
// reading and writing never stop. The last warp, the keeper, looks up the rows to come, and merges a row's sums while the workers sum up the next row. With
// room for one row only, a row's gradients follow its own sums. Segments and merging are logits_logp's, so the results have the same bits.
// Config: those of logits_segment; threads, cluster, slots, records
template <class Config> struct RowRecord {
    LogitsRow<Config> row;
    int read; // the number of rows before it that are read
    float scale, target_logit;
    LogitsUpstream upstream;
    LogitsFactors factors; // valid once its sums have been merged
};

template <class Config> struct ClusterStorage {
    SegmentSlot<Config> slots[Config::slots];
    SharedStorage<Config, 4> sums; // four sets: a block may be two rows ahead of another block's merging
    RowRecord<Config> records[Config::records];
    u64 full[Config::slots];                                                    // mbarriers: the slot's segment has arrived
    u64 known[Config::records], solved[Config::records], done[Config::records]; // the record has a row; it has its factors; no worker needs it
    u64 met[4];                                                                 // all sums of a row have arrived
};

// A cluster's rows, one after the other; a turn is a row's index among these.
template <class Config> struct ClusterRows {
    using Segment = Segment<Config>;
    using Element = typename Config::element;
    using Places = typename SegmentSlot<Config>::Places;
    static constexpr int workers = Config::threads / 32 - 1;
    ClusterStorage<Config> &shared;
    const LogitsLogpParams &params;
    int own;   // segments of a row that this block has, at most
    int depth; // rows for which there are slots; fewer than records

    __device__ __forceinline__ ClusterRows(ClusterStorage<Config> &shared, const LogitsLogpParams &params)
        : shared(shared), params(params), own((params.segments + Config::cluster - 1) / Config::cluster), depth(min(Config::slots / own, Config::records - 3)) {
    }

    __device__ __forceinline__ static int step() { return gridDim.x / Config::cluster; }
    __device__ __forceinline__ static int number(int turn) { return blockIdx.x / Config::cluster + turn * step(); }
    __device__ __forceinline__ bool is_row(int turn) const { return number(turn) < params.rows; }
    __device__ __forceinline__ static u32 at(const u64 *barriers, int index) { return shared_address(barriers + index); }
    __device__ __forceinline__ RowRecord<Config> &record(int turn) const { return shared.records[turn % Config::records]; }
    __device__ __forceinline__ LogitsSlots sums(int read) const { return shared_slots(shared.sums, read & 3, 0); }
    __device__ __forceinline__ void wait(const u64 *barriers, int turn) const {
        mbarrier_wait(at(barriers, turn % Config::records), turn / Config::records & 1);
    }

    __device__ __forceinline__ void start() const {
        clear_slots();
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

    // Clears the slots in which TMA leaves positions unfilled: those of a row's first segment, of its last, and of the one before, which extends into the
    // last one's vectors.
    __device__ __forceinline__ void clear_slots() const {
        for (int slot = warp_index(); slot < depth * own; slot += Config::threads / 32) {
            int s = cluster_rank() + slot % own * Config::cluster;
            if (s == 0 || s >= params.segments - 2) shared.slots[slot].clear();
        }
    }

    // Calls visit(segment, slot) for this warp's segments of the row. Which warp has which segments changes from turn to turn.
    template <class Visit> __device__ __forceinline__ void each(int turn, Visit visit) const {
        int rank = cluster_rank();
        for (int i = (u32)(warp_index() + turn) % workers; i < own; i += workers)
            if (rank + i * Config::cluster < params.segments) visit(rank + i * Config::cluster, turn % depth * own + i);
    }

    // ---- workers

    __device__ __forceinline__ Places places(const LogitsRow<Config> &row, int s) const { return {row.logits(params), s, params.vocab}; }

    // Requests a segment. If the row is not read, the slot counts as full at once.
    __device__ __forceinline__ void request(const LogitsRow<Config> &row, int s, int slot) const {
        if (lane_index() != 0) return;
        if (row.is_read(params)) shared.slots[slot].ask(places(row, s), at(shared.full, slot));
        else mbarrier_arrive_expect(at(shared.full, slot), 0);
    }

    // Waits for a segment, completes it in its slot, where it stays, and loads it into registers.
    __device__ __forceinline__ void take(const LogitsRow<Config> &row, int turn, int s, int slot, Segment &segment) const {
        Places lies = places(row, s);
        int place = shared.slots[slot].end_place(lies);
        Element end = {};
        if (place >= 0) end = lies.from[place];
        mbarrier_wait(at(shared.full, slot), turn / depth & 1);
        if (lies.has_ends()) {
            shared.slots[slot].put_end(lies, place, end);
            warp_barrier();
        }
        segment.left = min(params.vocab - s * Segment::columns, Segment::columns);
        shared.slots[slot].take(segment.data, lies, 0);
        segment.cut_behind();
    }

    // Sends a segment's sums to all blocks of the cluster.
    __device__ __forceinline__ void share(const LogitsSums &own_sums, int read, int s) const {
        LogitsSlots to = sums(read);
        u32 met = at(shared.met, read & 3);
        if constexpr (Config::cluster == 1) {
            leave<Config>(own_sums, to, s);
            if (lane_index() == 0) mbarrier_arrive(met);
        } else if (lane_index() < Config::cluster) {
            exchange_store(to.partial + s, make_float2(own_sums.origin, own_sums.sum), lane_index(), met);
            if constexpr (Config::has_entropy) exchange_store(to.moment + s, own_sums.moment, lane_index(), met);
        }
    }

    __device__ __forceinline__ void sum_row(int turn) const {
        wait(shared.known, turn);
        const RowRecord<Config> &of = record(turn); // read at each use, since registers are scarce
        if (!of.row.is_read(params)) return;
        each(turn, [&](int s, int slot) {
            Segment segment;
            take(of.row, turn, s, slot, segment);
            LogitsScale scale = {of.scale, params.softcap, params.inverse_softcap};
            share(segment.statistics(scale, of.row.logits(params), s, of.row.target), of.read, s);
        });
    }

    // The number of a segment's elements before the first aligned vector of its gradients. The warp that has the previous segment writes these; write_head()
    // writes the row's first ones.
    __device__ __forceinline__ int head(const LogitsRow<Config> &row, int s) const {
        if constexpr (Config::vector_bytes == 16) return 0;
        return (int)(-(u64)(row.gradients(params) + (i64)s * Segment::columns) % 16) / (int)sizeof(typename Config::element);
    }

    // Writes the row's first `count` gradients, one in each lane. from: the row's first logit, in its slot.
    __device__ __forceinline__ void write_head(const RowRecord<Config> &of, const LogitsRow<Config> &row, const typename Config::element *from,
                                               int count) const {
        if (lane_index() >= count) return;
        LogitsScale scale = {of.scale, params.softcap, params.inverse_softcap};
        float gradient = 0, logit = to_float(from[lane_index()]);
        if (lane_index() == row.target) gradient = of.factors.target;
        else if (row.target >= 0 && of.factors.large) gradient = element_gradient<Config, true>(logit, scale, of.factors);
        else if (row.target >= 0) gradient = element_gradient<Config, false>(logit, scale, of.factors);
        store_rounded(gradient, row.gradients(params) + lane_index());
    }

    // Writes a row's gradients. As soon as a segment is in registers, the segment of the row `depth` turns later is requested for its slot.
    __device__ __forceinline__ void write_row(int turn) const {
        wait(shared.solved, turn);
        RowRecord<Config> &of = record(turn);
        LogitsRow<Config> row = of.row;
        LogitsScale scale = {of.scale, params.softcap, params.inverse_softcap};
        bool has_next = is_row(turn + depth);
        if (has_next) wait(shared.known, turn + depth);
        each(turn, [&](int s, int slot) {
            Segment segment;
            int skipped = row.place >= 0 ? head(row, s) : 0;
            Places lies = places(row, s);
            if (row.target >= 0) shared.slots[slot].take(segment.data, lies, skipped);
            if (skipped > 0 && s == 0) write_head(of, row, shared.slots[slot].element(lies, lies.before), skipped);
            warp_barrier(); // all lanes have read the slot
            if (has_next) request(record(turn + depth).row, s, slot);
            if (row.place >= 0) write_gradients(params, row, segment, s * Segment::columns + skipped, scale, of.factors);
        });
        warp_barrier();
        if (lane_index() == 0) mbarrier_arrive(at(shared.done, turn % Config::records));
    }

    __device__ __forceinline__ void work() const {
        int lag = depth > 1 ? 1 : 0; // the gradients of a row follow the sums of the next one
        for (int turn = 0; turn < depth && is_row(turn); turn++) {
            wait(shared.known, turn);
            each(turn, [&](int s, int slot) { request(record(turn).row, s, slot); });
        }
        for (int turn = 0; turn < lag || is_row(turn - lag); turn++) {
            if (is_row(turn)) sum_row(turn);
            if (turn >= lag) write_row(turn - lag);
        }
    }

    // ---- the keeper

    // Loads what is needed of the rows of 32 turns, one in each lane. Past the cluster's last row, that row is loaded again.
    __device__ __forceinline__ RowRecord<Config> look_up(int turn) const {
        int end = (int)params.rows - 1, last = end - (end - number(0)) % step();
        LogitsRow<Config> row(params, min(number(turn), last));
        return {row, 0, row.scale(params).scale, to_float(load_target_logit(params, row)), load_upstream(params, row), {0, false, 0, 0, 0}};
    }

    // The lane that has looked the row up writes it to its record, for the workers. reads: the number of rows before it that are read.
    __device__ __forceinline__ void publish(const RowRecord<Config> &found, int turn, int &reads) const {
        if (turn >= Config::records) wait(shared.done, turn - Config::records);
        if (lane_index() == turn % 32) {
            record(turn) = found;
            record(turn).read = reads;
            mbarrier_arrive(at(shared.known, turn % Config::records));
        }
        reads += shuffle((int)found.row.is_read(params), turn % 32);
        warp_barrier();
    }

    // Merges a row's sums, writes its results, and computes the factors of its gradients.
    __device__ __forceinline__ void solve(int turn) const {
        RowRecord<Config> &of = record(turn);
        LogitsRow<Config> row = of.row;
        bool is_read = row.is_read(params);
        if (is_read) {
            u32 met = at(shared.met, of.read & 3);
            if (Config::cluster > 1 && lane_index() == 0)
                mbarrier_arrive_expect(met, params.segments * (int)(Config::has_entropy ? sizeof(float2) + sizeof(float) : sizeof(float2)));
            mbarrier_wait(met, of.read >> 2 & 1);
        }
        LogitsNormaliser normaliser = finish_row(params, row, number(turn), sums(of.read), of.target_logit, cluster_rank() == 0);
        warp_barrier(); // all lanes have read the sums, which other blocks may now overwrite
        if (lane_index() == 0) {
            of.factors = find_factors(params, row, {of.scale, params.softcap, params.inverse_softcap}, of.upstream, normaliser, true, of.target_logit);
            mbarrier_arrive(at(shared.solved, turn % Config::records));
        }
    }

    __device__ __forceinline__ void keep() const {
        constexpr int lead = Config::records - 3; // how many rows ahead a row is published: the workers may still use the records of the two rows before
        int reads = 0;
        RowRecord<Config> found = look_up(lane_index());
        for (int turn = 0; turn < lead || is_row(turn - lead); turn++) {
            if (turn >= lead) solve(turn - lead);
            if (!is_row(turn)) continue;
            if (turn > 0 && turn % 32 == 0) found = look_up(turn + lane_index());
            publish(found, turn, reads);
        }
    }
};

template <class Config> __device__ __forceinline__ void logits_logp_fused_cluster(const LogitsLogpParams &params) {
    ClusterRows<Config> rows(shared_storage<Config, ClusterStorage<Config>>(), params);
    rows.start();
    if (warp_index() == ClusterRows<Config>::workers) rows.keep();
    else rows.work();
}
