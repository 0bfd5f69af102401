// The static tile scheduler of linear_logp's tile kernels: which units a persistent block (cluster) computes, and in which order.
//
// A unit is a row block's tiles of one split of the vocabulary. A big split has several neighbouring tiles, a small one a single tile (params/linear_logp.h).
// Units are dealt to workers: clusters or, in the ping-pong schedule, each consumer warpgroup of each cluster (unit.cuh).
//
// A unit's bits do not depend on the worker that computes it, so the order is free. Within a group of row blocks, rows run fastest: blocks that run at the
// same time then share weight tiles in the L2, while the group's rows of hidden stay there. The units of big splits are dealt round robin. Workers that get
// one fewer of these catch up on one-tile units first; the rest is again dealt round robin. (Where blocks ask for their one-tile units instead, tickets.cuh
// has the dynamic scheduler.)
// Config: is_packed, block_rows, cluster

// With is_packed the rows are the packed valid rows: only the device knows their number, and params.row has the index of each in the caller's arrays.
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
    static constexpr bool units_are_tiles = false; // a unit may have several tiles
    __device__ __forceinline__ Schedule(const LinearLogpParams &params, int turn = 0) : params(params), turn(turn) {}

    // Between units only `turn` and `step` are held in registers: everything else is cheap to compute again from the launch's parameters.
    __device__ __forceinline__ int worker() const { return worker_index<Config>(turn); }
    __device__ __forceinline__ static int workers() { return worker_count<Config, turns>(); }
    __device__ __forceinline__ int row_blocks() const {
        return (int)((row_count<Config>(params) + Config::block_rows * Config::cluster - 1) / (Config::block_rows * Config::cluster));
    }

    // Swaps the state with the other warpgroup's schedule, so that a loop that alternates between the two contains the code of one.
    __device__ __forceinline__ void exchange(Schedule &other) {
        exchange_values(turn, other.turn);
        exchange_values(step, other.step);
    }

    // Unit number `index` of the row_blocks x splits units that belong to the splits from `base` on.
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

    // With the dynamic scheduler: the units that a worker has without asking, which are its big ones or, where there are none, one small unit.
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
        int idle = late > 0 ? workers() - late : 0; // workers with one big unit fewer than the others
        int catch_up = idle > 0 && worker() >= late ? split.big_tiles : 0;
        int index = i < catch_up ? worker() - late + i * idle : idle * split.big_tiles + worker() + (i - catch_up) * workers();
        // The units for all come after those for catching up, so an index past the end of either means that no unit is left.
        if (index >= small_units) return false;
        locate(index, split.big, split.splits - split.big, unit);
        return true;
    }
};

// The units of one launch of linear_logp_save_exp: those of all row blocks or, in FLP_SAVE_EXP_AGAIN, of the row blocks in which a row overflowed.
// params.first_tile is added to the tile's index here in the ping-pong schedule, and in the kernel otherwise: the other way round, each spills a register.
template <class Config, int turns = 1> struct SaveExpUnits {
    const LinearLogpParams &params;
    Schedule<Config, turns> schedule;
    static constexpr bool units_are_tiles = false;
    __device__ __forceinline__ SaveExpUnits(const LinearLogpParams &params, int turn = 0) : params(params), schedule(params, turn) {}

    __device__ __forceinline__ bool has_any() const {
        return params.phase != FLP_SAVE_EXP_AGAIN || (row_count<Config>(params) > 0 && params.block_overflow[0]);
    }

    __device__ __forceinline__ void exchange(SaveExpUnits &other) { schedule.exchange(other.schedule); }

    // Skips the units of row blocks that need not be computed again.
    __device__ __forceinline__ bool next(Unit &unit) {
        while (has_any() && schedule.next(unit)) {
            if constexpr (turns > 1) unit.first_tile += params.first_tile;
            if (params.phase != FLP_SAVE_EXP_AGAIN || params.block_overflow[unit.row_block + 1]) return true;
        }
        return false;
    }
};
