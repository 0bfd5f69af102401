// Two consumer warpgroups that take turns on the tensor cores: group 0's first tile, group 1's first, group 0's second, ... until one has no more.
// Config: those of tile_product
template <class Config> struct Turns {
    Stages<Config> &shared;
    int group, turn; // turn: of the other group's tiles, which comes behind this group's next one

    template <class Walk> __device__ __forceinline__ Turns(Stages<Config> &shared, int group, Walk other) : shared(shared), group(group), turn(group) {
        Unit unit;
        int tiles = 0;
        while (other.next(unit)) tiles += unit.tiles;
        if (lane_index() == 0) shared.turns.others[threadIdx.x / 32] = tiles;
        warp_barrier();
    }

    // In shared memory, since registers are few.
    __device__ __forceinline__ int others() const { return shared.turns.others[threadIdx.x / 32]; }

    __device__ __forceinline__ void wait(Ring<Config> &ring, int steps) const {
        if (turn == 0 || turn > others()) return;
        mbarrier_wait(shared_address(&shared.turns.barrier[group]), (turn - 1) & 1);
        ring.skip(steps);
    }

    __device__ __forceinline__ void pass() {
        if (turn < others() && lane_index() == 0) mbarrier_arrive(shared_address(&shared.turns.barrier[1 - group]));
        turn++;
    }
};
