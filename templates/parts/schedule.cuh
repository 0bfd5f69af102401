// The rows of a tile kernel of linear_logp, and which (row block, split) units of them a persistent block works through, in which order.
//
// A unit's bits do not depend on who computes it, so the order is free: within a group of row blocks, rows run fastest, so
// that blocks at work together share weight tiles in the L2 while the group's hidden rows stay there. The big splits are
// dealt round robin; blocks that got one fewer catch up on one-tile units before all go on round robin.
// Config: is_packed, block_rows, cluster
// Where rows lie close together (is_packed), the device alone knows how many there are, and `row` says where each stands in what the caller gave.
template <class Config> __device__ __forceinline__ i64 row_count(const LinearLogpParams &params) {
    if constexpr (Config::is_packed) return *params.row_count;
    else return params.rows;
}

template <class Config> __device__ __forceinline__ int source_row(const LinearLogpParams &params, int row) {
    if constexpr (Config::is_packed) return params.row[row];
    else return row;
}

template <class Config, int turns = 1> struct Schedule {
    const LinearLogpParams &params;
    int turn, step = 0;
    static constexpr bool units_are_tiles = false; // a unit has several
    __device__ __forceinline__ Schedule(const LinearLogpParams &params, int turn = 0) : params(params), turn(turn) {}

    // Few registers hold between units: the rest is cheap to take from the launch again.
    __device__ __forceinline__ int worker() const { return worker_index<Config>(turn); }
    __device__ __forceinline__ static int workers() { return worker_count<Config, turns>(); }
    __device__ __forceinline__ int row_blocks() const {
        return (int)((row_count<Config>(params) + Config::block_rows * Config::cluster - 1) / (Config::block_rows * Config::cluster));
    }

    // With the walk of another turn: two in a loop are emitted once.
    __device__ __forceinline__ void exchange(Schedule &other) {
        exchange_values(turn, other.turn);
        exchange_values(step, other.step);
    }

    // index: of a unit among row_blocks x splits units that start at split `base`.
    __device__ __forceinline__ void locate(int index, int base, int splits, Unit &unit) const {
        const Split &split = params.split;
        int group_units = params.group * splits;
        int g = index / group_units, within = index - g * group_units;
        int height = min(params.group, row_blocks() - g * params.group);
        int s = within / height;
        unit.row_block = g * params.group + within - s * height;
        unit.split = base + s;
        bool is_big = unit.split < split.big;
        unit.first_tile = is_big ? unit.split * split.big_tiles : split.big * split.big_tiles + unit.split - split.big;
        unit.tiles = is_big ? split.big_tiles : 1;
    }

    __device__ __forceinline__ int small_units() const { return row_blocks() * (params.split.splits - params.split.big); }
    __device__ __forceinline__ void locate_small(int index, Unit &unit) const { locate(index, params.split.big, params.split.splits - params.split.big, unit); }

    // What each worker has of its own before any small units are asked for: its big units or, where there are none, a small one.
    __device__ __forceinline__ bool next_own(Unit &unit) {
        bool has_big = params.split.big > 0;
        int splits = has_big ? params.split.big : params.split.splits, index = worker() + step * workers();
        if (index >= row_blocks() * splits || (!has_big && step > 0)) return false;
        step++;
        locate(index, 0, splits, unit);
        return true;
    }

    __device__ __forceinline__ bool next(Unit &unit) {
        const Split &split = params.split;
        int big_units = row_blocks() * split.big, small_units = row_blocks() * (split.splits - split.big);
        int i = step++;
        int rounds = big_units / workers(), late = big_units - rounds * workers();
        int mine = rounds + (worker() < late ? 1 : 0);
        if (i < mine) {
            locate(worker() + i * workers(), 0, split.big, unit);
            return true;
        }
        i -= mine;
        int idle = late > 0 ? workers() - late : 0; // blocks with one big unit fewer than the others
        int catch_up = idle > 0 && worker() >= late ? split.big_tiles : 0;
        int index = i < catch_up ? worker() - late + i * idle : idle * split.big_tiles + worker() + (i - catch_up) * workers();
        // The shared part lies behind the catch-up part: past the end in one is past the end in both.
        if (index >= small_units) return false;
        locate(index, split.big, split.splits - split.big, unit);
        return true;
    }
};

// The units of one launch of linear_logp_save_exp: of all row blocks, or of those with a row that overflowed. That a block's tiles begin at params.first_tile
// is known here where warpgroups take turns, else to the kernel: the other way round each spills a register.
template <class Config, int turns = 1> struct SaveExpUnits {
    const LinearLogpParams &params;
    Schedule<Config, turns> schedule;
    static constexpr bool units_are_tiles = false;
    __device__ __forceinline__ SaveExpUnits(const LinearLogpParams &params, int turn = 0) : params(params), schedule(params, turn) {}

    __device__ __forceinline__ bool has_any() const {
        return params.phase != FLP_SAVE_EXP_AGAIN || (row_count<Config>(params) > 0 && params.block_overflow[0]);
    }

    __device__ __forceinline__ void exchange(SaveExpUnits &other) { schedule.exchange(other.schedule); }

    // Where only blocks that overflowed are run again, the others' units are passed over.
    __device__ __forceinline__ bool next(Unit &unit) {
        while (has_any() && schedule.next(unit)) {
            if constexpr (turns > 1) unit.first_tile += params.first_tile;
            if (params.phase != FLP_SAVE_EXP_AGAIN || params.block_overflow[unit.row_block + 1]) return true;
        }
        return false;
    }
};
