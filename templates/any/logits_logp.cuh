// logp, lse, entropy and argmax of rows of logits in one read: a team of warps takes a row, or a part of one.
//
// With one part a row, the segments' sums meet in shared memory and the team's warps merge a row each in turn, for which the others do not wait;
// with more, they go to scratch for logits_logp_combine. Both merge them in the same order. Memory does not wait either: before a warp leaves the
// sums of a segment, the logits of its next one are under way.
// Where a warp holds a whole row, nothing meets.
// Config: as for a segment; threads, holds_row
template <class Config> struct RowsStorage : NextSegment<Config>::template Storage<Config::threads / 32> {
    static constexpr int warps = Config::threads / 32;
    SharedStorage<Config, warps> sums;
    u64 met[warps]; // all sums of a row
};

// Units are rows, or with few rows the parts of each in turn. Finding the next one takes no branch: there the compiler would wait for the logits
// under way. Which warp has a unit's first segment changes from turn to turn, so that all have equally many.
template <class Config> struct LogitsUnits {
    using Segment = Segment<Config>;
    struct Unit {
        int number, part; // of the row (the last one's is followed by units of nothing); which part of it
        int first, end;   // of its segments this warp's are first, first + size, ... below end
    };
    const LogitsLogpParams &params;
    int size, warp; // warps that share a unit; which of the block's
    int part_segments, step_rows, step_parts;

    __device__ __forceinline__ explicit LogitsUnits(const LogitsLogpParams &params)
        : params(params), size(1 << params.team_log2), warp(warp_index()), part_segments((params.segments + params.parts - 1) / params.parts),
          step_rows(gridDim.x * teams() / params.parts), step_parts(gridDim.x * teams() % params.parts) {}

    __device__ __forceinline__ int team() const { return warp >> params.team_log2; }
    __device__ __forceinline__ int teams() const { return Config::threads / 32 >> params.team_log2; }
    __device__ __forceinline__ int rows() const { return (int)params.rows; }
    __device__ __forceinline__ Unit at(int number, int part, int turn) const {
        int from = part * part_segments;
        return {number, part, from + ((warp + turn) & (size - 1)), number < rows() ? min(from + part_segments, params.segments) : 0};
    }
    __device__ __forceinline__ Unit first() const {
        int unit = blockIdx.x * teams() + team(), number = unit / params.parts;
        return at(number, unit - number * params.parts, 0);
    }
    // turn: the next one.
    __device__ __forceinline__ Unit behind(const Unit &unit, int turn) const {
        int part = unit.part + step_parts, carry = part >= params.parts;
        return at(unit.number + step_rows + carry, part - carry * params.parts, turn);
    }
    __device__ __forceinline__ LogitsRow<Config> find_row(const Unit &unit) const { return LogitsRow<Config>::find(params, min(unit.number, rows() - 1)); }
    // With few rows an ignored one costs less than to wait for its target.
    __device__ __forceinline__ void leave_out_ignored(Unit &unit, const LogitsRow<Config> &row) const {
        if (params.parts > 1 ? row.source < 0 : !row.is_read(params)) unit.end = 0;
    }
};

// Where a warp holds a whole row, the row's sums are those of its one segment. What else is done of a row, from its target to its results, would take as
// long as its logits: each lane does that of a row of its own, for up to 32 of the warp's rows at once.
template <class Config> struct HeldRows {
    using Element = typename Config::element;
    const LogitsLogpParams &params;
    LogitsRow<Config> own; // this lane's
    LogitsScale scale;
    LogitsSums sums = {0, 0, 0, 0, 0};
    float target_logit = 0;

    __device__ __forceinline__ HeldRows(const LogitsLogpParams &params, int number)
        : params(params), own(LogitsRow<Config>::find(params, number)), scale(own.scale(params)) {}

    // source: below 0 where the row is not read.
    __device__ __forceinline__ const Element *logits(int source) const { return (const Element *)params.logits + source * params.logits_stride; }
    __device__ __forceinline__ void load(Segment<Config> &segment, int source) const {
        if (source >= 0) segment.load(logits(source), 0, params.vocab);
    }

    // rows: of the first lanes.
    __device__ __forceinline__ void sum_up(int rows) {
        Segment<Config> segment;
        load(segment, shuffle(own.source, 0)); // whatever its target: an ignored row costs less than to wait for that
        own.take_target(params, own.load_target(params));
        Element target_element = load_target_logit(params, own);
        int read = own.is_read(params) ? own.source : -1;
        for (int i = 0; i < rows; i++) {
            int source = shuffle(read, i), next = shuffle(read, min(i + 1, 31)), target = shuffle(own.target, i);
            LogitsScale its_scale = {shuffle(scale.scale, i), scale.softcap, scale.inverse_softcap};
            LogitsSums its = {0, 0, 0, 0, 0};
            if (source >= 0) its = segment.statistics(its_scale, logits(source), 0, target);
            load(segment, i + 1 < rows ? next : -1);
            if (lane_index() == i) sums = its;
        }
        target_logit = to_float(target_element);
    }

    __device__ __forceinline__ void finish(int number) {
        LogitsNormaliser normaliser = find_normaliser(own, sums, scale, target_logit);
        write_row(params, own, number, sums, normaliser, scale);
    }
};

template <class Config> __device__ __forceinline__ void held_rows(const LogitsLogpParams &params) {
    int count = (int)params.rows, step = gridDim.x * (Config::threads / 32);
    allow_next_kernel();
    for (int first = blockIdx.x * (Config::threads / 32) + warp_index(); first < count; first += 32 * step) {
        int rows = min(32, (count - first + step - 1) / step), number = first + lane_index() * step;
        HeldRows<Config> held(params, min(number, count - 1));
        held.sum_up(rows);
        if (lane_index() < rows) held.finish(number);
    }
}

template <class Config> __device__ __forceinline__ void shared_rows(const LogitsLogpParams &params) {
    auto &shared = shared_storage<Config, RowsStorage<Config>>();
    using Segment = Segment<Config>;
    LogitsUnits<Config> units(params);
    bool is_whole = params.parts == 1;
    typename LogitsUnits<Config>::Unit unit = units.first();
    LogitsRow<Config> row = units.find_row(unit);
    typename LogitsRow<Config>::TargetWords words = row.load_target(params);
    Segment segment;
    NextSegment<Config> ahead(shared);
    allow_next_kernel();
    if (threadIdx.x < RowsStorage<Config>::warps) mbarrier_init(shared_address(&shared.met[threadIdx.x]), units.size);
    block_barrier();
    if (is_whole) row.take_target(params, words);
    units.leave_out_ignored(unit, row);
    if (unit.first < unit.end) ahead.ask(segment, row.logits(params), unit.first, params.vocab);
    if (!is_whole) row.take_target(params, words); // its logits are under way
    for (int turn = 0; unit.number < units.rows(); turn++) {
        auto next_unit = units.behind(unit, turn + 1);
        LogitsRow<Config> next = units.find_row(next_unit);
        words = next.load_target(params);
        int set = turn & (units.size - 1), place = units.team() * units.size + set;
        bool finishes = is_whole && (units.warp & (units.size - 1)) == set;
        typename Config::element target_element = {};
        if (finishes) target_element = load_target_logit(params, row);
        float target_logit = 0;
        LogitsSlots slots = is_whole ? shared_slots(shared.sums, place, 0) : scratch_slots<Config>(params, unit.number);
        int s = unit.first;
        for (bool is_last = false; !is_last; s += units.size) {
            is_last = s + units.size >= unit.end;
            auto ask_for_next = [&] {
                if (is_last) {
                    // Loads are waited for together, so what came with this unit's logits is taken before the next one's are asked for.
                    target_logit = to_float(target_element);
                    pin_value(target_logit);
                    next.take_target(params, words);
                    units.leave_out_ignored(next_unit, next);
                }
                if (!is_last || next_unit.first < next_unit.end)
                    ahead.ask(segment, is_last ? next.logits(params) : row.logits(params), is_last ? next_unit.first : s + units.size, params.vocab);
            };
            LogitsSums sums = {0, 0, 0, 0, 0};
            if (s < unit.end) ahead.take(segment, row.logits(params), s, params.vocab);
            if constexpr (NextSegment<Config>::is_apart) ask_for_next();
            if (s < unit.end) sums = segment.statistics(row.scale(params), row.logits(params), s, row.target);
            if constexpr (!NextSegment<Config>::is_apart) ask_for_next();
            if (s < unit.end) leave<Config>(sums, slots, s);
        }
        if (is_whole) {
            if (lane_index() == 0) mbarrier_arrive(shared_address(&shared.met[place]));
            if (finishes) {
                mbarrier_wait(shared_address(&shared.met[place]), turn >> params.team_log2 & 1);
                finish_row(params, row, unit.number, slots, target_logit, true);
                warp_barrier(); // all lanes have read the sums: the next row's may take their place
            }
        }
        row = next;
        unit = next_unit;
    }
}

template <class Config> __device__ __forceinline__ void logits_logp(const LogitsLogpParams &params) {
    if constexpr (Config::holds_row) held_rows<Config>(params);
    else shared_rows<Config>(params);
}
