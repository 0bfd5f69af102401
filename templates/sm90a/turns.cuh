// The ping-pong schedule: two consumer warpgroups alternate on the tensor cores, so that each one's epilogue runs during the other's products.
//
// The tiles are multiplied in a fixed order: group 0's first tile, group 1's first, group 0's second, and so on; when one group has no more, the other's
// remaining tiles follow one another. The producer loads them in this order through one ring of stages.
//
// Hand-over: when a warpgroup g has issued all products of a tile, its four warps arrive at barrier[1 - g] (pass()) and begin their epilogue. Before its next
// tile, a warpgroup waits at its own barrier (wait()) and passes over the stages of the other's tile.
// Config: those of tile_product
template <class Config> struct Turns {
    Stages<Config> &shared;

    // other: the walk of the other warpgroup, whose tiles are counted here.
    template <class Walk> __device__ __forceinline__ Turns(Stages<Config> &shared, int group, Walk other) : shared(shared) {
        Unit unit;
        int tiles = 0;
        while (other.next(unit)) tiles += unit.tiles;
        if (lane_index() == 0) shared.turns.of_warp[threadIdx.x / 32] = {tiles, group};
        warp_barrier();
    }

    // Registers are scarce: the group is computed from the thread's index at each use, and a warp's state is in shared memory.
    __device__ __forceinline__ static int group() { return thread_index_reread() / 128; }
    __device__ __forceinline__ WarpTurn &of_warp() const { return shared.turns.of_warp[thread_index_reread() / 32]; }

    // Called after pass(): the number of tiles that the warp's group had before the one that it has just multiplied.
    __device__ __forceinline__ static int tiles_before(const Stages<Config> &shared) {
        return shared.turns.of_warp[thread_index_reread() / 32].turn - group() - 1;
    }

    // Called before the products of the group's next tile. If the tile before it in the order is the other warpgroup's, waits until that one's products have
    // been issued, and passes over its stages. steps: of that tile.
    __device__ __forceinline__ void wait(Ring<Config> &ring, int steps) const {
        WarpTurn own = of_warp();
        if (own.turn == 0 || own.turn > own.others) return;
        mbarrier_wait(shared_address(&shared.turns.barrier[group()]), (own.turn - 1) & 1);
        ring.skip(steps);
    }

    // Hands the tensor cores over to the other warpgroup, if it has a tile that follows.
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
