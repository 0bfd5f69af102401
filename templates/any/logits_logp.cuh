// logp, lse, entropy and argmax of rows of logits in one read: a team of warps takes a row, or a part of one.
//
// Each warp computes the sums of its segments (logits_segment.cuh) of the row. With one part a row, the sums go to shared memory, where an mbarrier counts
// them, and the team's warps take turns to merge a row, while the others go on with the next one. With more parts, the sums go to scratch memory for
// logits_logp_combine. Both merge in the same order. To keep memory busy, a warp loads its next segment before it stores the sums of the current one.
//
// Where a warp holds a whole row (holds_row), there is nothing to merge.
// Config: those of logits_segment; threads, holds_row
template <class Config> struct RowsStorage : NextSegment<Config>::template Storage<Config::threads / 32> {
    static constexpr int warps = Config::threads / 32;
    SharedStorage<Config, warps> sums;
    u64 met[warps]; // mbarriers: all sums of a row are there
};

// The order in which teams work through their units: a unit is a row or, where there are few rows, one of its `parts` parts. Finding the next unit takes no
// branch, since at a branch the compiler would wait for the loads in flight. Which warp gets a unit's first segment changes from turn to turn, so that all
// warps get equally many segments.
template <class Config> struct LogitsUnits {
    using Segment = Segment<Config>;
    struct Unit {
        int number, part; // the row's number (at or past the last one: an empty unit), and which part of the row
        int first, end;   // this warp has the segments first, first + size, ... below end
    };
    const LogitsLogpParams &params;
    int size, warp; // the warps that share a unit; this warp's index in the block
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
    // The team's next unit; turn: that unit's.
    __device__ __forceinline__ Unit behind(const Unit &unit, int turn) const {
        int part = unit.part + step_parts, carry = part >= params.parts;
        return at(unit.number + step_rows + carry, part - carry * params.parts, turn);
    }
    __device__ __forceinline__ LogitsRow<Config> find_row(const Unit &unit) const { return LogitsRow<Config>::find(params, min(unit.number, rows() - 1)); }
    // Makes the unit empty where its row need not be read. With few rows (parts > 1) an ignored row is read all the same, which costs less than waiting for
    // its target.
    __device__ __forceinline__ void leave_out_ignored(Unit &unit, const LogitsRow<Config> &row) const {
        if (params.parts > 1 ? row.source < 0 : !row.is_read(params)) unit.end = 0;
    }
};

// Where a warp holds a whole row, the row's sums are those of its only segment. The rest of the work on a row, from loading its target to storing its
// results, would take as long as the logits themselves: so each lane does it for a row of its own, for up to 32 of the warp's rows at once.
template <class Config> struct HeldRows {
    using Element = typename Config::element;
    const LogitsLogpParams &params;
    LogitsRow<Config> own; // this lane's
    LogitsScale scale;
    LogitsSums sums = {0, 0, 0, 0, 0};
    float target_logit = 0;

    __device__ __forceinline__ HeldRows(const LogitsLogpParams &params, int number)
        : params(params), own(LogitsRow<Config>::find(params, number)), scale(own.scale(params)) {}

    // source: the row's index in the inputs; negative where the row is not read.
    __device__ __forceinline__ const Element *logits(int source) const { return (const Element *)params.logits + source * params.logits_stride; }
    __device__ __forceinline__ void load(Segment<Config> &segment, int source) const {
        if (source >= 0) segment.load(logits(source), 0, params.vocab);
    }

    // Computes the sums of the rows of the first `rows` lanes, and keeps each in its lane.
    __device__ __forceinline__ void sum_up(int rows) {
        Segment<Config> segment;
        load(segment, shuffle(own.source, 0)); // before its target is known: reading an ignored row costs less than waiting for the target
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
    if (!is_whole) row.take_target(params, words); // now that its logits are being loaded
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
                    // All loads in flight are waited for together, so values loaded with this unit's logits are used before the next unit's loads begin.
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
                warp_barrier(); // all lanes have read the sums, which the next row's may now overwrite
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
