// Two consumer warpgroups that take turns on the tensor cores: group 0's first tile, group 1's first, group 0's second, ... until one has no more.
// Config: those of tile_product
template <class Config> struct Turns {
    Stages<Config> &shared;

    template <class Walk> __device__ __forceinline__ Turns(Stages<Config> &shared, int group, Walk other) : shared(shared) {
        Unit unit;
        int tiles = 0;
        while (other.next(unit)) tiles += unit.tiles;
        if (lane_index() == 0) shared.turns.of_warp[threadIdx.x / 32] = {tiles, group};
        warp_barrier();
    }

    // In shared memory, or taken from the thread's number again, since registers are few.
    __device__ __forceinline__ static int group() { return thread_index_reread() / 128; }
    __device__ __forceinline__ WarpTurn &of_warp() const { return shared.turns.of_warp[thread_index_reread() / 32]; }

    // Of the warp's group, behind the products of its next tile: those that it had before.
    __device__ __forceinline__ static int tiles_before(const Stages<Config> &shared) {
        return shared.turns.of_warp[thread_index_reread() / 32].turn - group() - 1;
    }

    __device__ __forceinline__ void wait(Ring<Config> &ring, int steps) const {
        WarpTurn own = of_warp();
        if (own.turn == 0 || own.turn > own.others) return;
        mbarrier_wait(shared_address(&shared.turns.barrier[group()]), (own.turn - 1) & 1);
        ring.skip(steps);
    }

    __device__ __forceinline__ void pass() {
        warp_barrier(); // all lanes have read it
        if (lane_index_reread() == 0) {
            WarpTurn &own = of_warp();
            if (own.turn < own.others) mbarrier_arrive(shared_address(&shared.turns.barrier[1 - group()]));
            own.turn++;
        }
        warp_barrier();
    }
};
