// A in slabs: as if slabs of A's columns, as stored, had been cut off and laid one behind the other, each with slab_rows rows. A launch then takes all of them,
// where each would need a launch of its own, between which the multiprocessors wait: for the last store, for the next block, and for its first operands.
//
// Where A is stored [rows, inner] (grad_hidden), the inner size has parts, each with a sum of its own that is added to out: part after part, as separate
// launches would add them, with the same bits. A cluster adds all parts of its tiles itself, one after the other. Where A is stored [inner, rows]
// (grad_weight), each slab has rows of out of its own.
// Config: a_transposed, block_inner, turns, and those of product_tiles and product_parts

// The steps of a unit, and how much further A's rows and steps lie in the matrix of its tensor map than in the product.
template <class Config> struct SlabSteps : AllSteps<Config> {
    int a_row, a_step;
    __device__ __forceinline__ SlabSteps(int count, int begin, int a_row, int a_step) : AllSteps<Config>{count, begin}, a_row(a_row), a_step(a_step) {}
};

template <class Config> struct ProductSlabs {
    const MatrixProductParams &params;

    __device__ __forceinline__ ProductParts<Config> parts() const { return {params}; }

    // All rows of a unit, and all of its steps, are in one slab.
    __device__ __forceinline__ SlabSteps<Config> steps(const Unit &unit, int rows, int inner) const {
        if constexpr (Config::a_transposed)
            return steps_of_rows(divide(unit.row_block * Config::block_rows * Config::cluster, params.slab_columns), rows, inner);
        else return steps_of_part(parts().first_inner(unit.first_tile), inner);
    }

    // Without any step along the inner size, one past the end of A's last slab and of B is taken, which TMA fills with zeros.
    __device__ __forceinline__ SlabSteps<Config> steps_of_rows(int slab, int rows, int inner) const {
        int slabs = inner > 0 ? slab : ceil_div(rows, params.slab_columns), begin = inner > 0 ? 0 : ceil_div(params.inner, Config::block_inner) + 1;
        return {max(ceil_div(inner, Config::block_inner), 1), begin, -slab * params.slab_columns, divide(slabs * params.slab_rows, Config::block_inner)};
    }

    // The last part may have fewer steps than the others.
    __device__ __forceinline__ SlabSteps<Config> steps_of_part(int first, int inner) const {
        int slab = divide(first, params.slab_columns);
        return {ceil_div(min(params.part_inner, inner - first), Config::block_inner), divide(first, Config::block_inner), slab * params.slab_rows,
                -divide(slab * params.slab_columns, Config::block_inner)};
    }

    // The steps of the part before a unit's: of the same tile or, before its first part, of the last part of the tile before it.
    __device__ __forceinline__ int steps_before(const Unit &unit, int inner) const {
        bool is_first = parts().part(unit.first_tile) == 0;
        return ceil_div(is_first ? inner - (params.parts - 1) * params.part_inner : params.part_inner, Config::block_inner);
    }
};

// The walk: all parts of a tile, then those of the cluster's next tile. In the ping-pong schedule the warpgroups alternate part by part.
template <class Config, int turns, class HeadStart> struct PartsInOrder {
    static constexpr bool units_are_tiles = true;
    using Tiles = ProductTiles<Config, 1, int, HeadStart>;
    const MatrixProductParams &params;
    Tiles tiles;
    int part = 0;

    __device__ __forceinline__ PartsInOrder(const MatrixProductParams &params, int rows, int turn, HeadStart head)
        : params(params), tiles(rows, params.columns, params.group, 0, head) {
        if (turn > 0) advance();
    }

    __device__ __forceinline__ PartsInOrder<Config, 1, HeadStart> of_all_turns() const { return {params, tiles.rows, 0, tiles.head}; }

    __device__ __forceinline__ void advance() {
        if (++part < params.parts) return;
        part = 0;
        tiles.advance();
    }

    __device__ __forceinline__ bool next(Unit &unit) {
        Tiles own = tiles;
        if (!own.next(unit)) return false;
        unit.first_tile += part * tiles.column_tiles();
#pragma unroll
        for (int turn = 0; turn < turns; turn++) advance();
        return true;
    }
};

// Adds parts to memory one after the other: a part's additions begin when those of the part before it are complete. That takes far less time than a part's
// products, so that nobody really waits. A warp's first lane asks TMA for its additions, and that lane alone waits for them.
//
// added[g], in the ping-pong schedule: the other warpgroup's part has been added, so warpgroup g may add its next one.
template <class Config> struct SumsInOrder {
    static constexpr bool takes_turns = Config::turns > 1;
    template <bool with, class Base> struct WithBarriers : Base {};
    template <class Base> struct WithBarriers<true, Base> : Base { u64 added[2]; };
    struct alignas(1024) Shared : WithBarriers<takes_turns, ProductShared<Config>> {};

    __device__ __forceinline__ static void init(Shared &shared) {
        if constexpr (takes_turns) {
            for (int g = 0; g < 2; g++) mbarrier_init(shared_address(&shared.added[g]), 4 * TileProduct<Config>::parts); // one of each warp for each 64 rows
            mbarrier_init_fence();
        }
    }

    // Called by a consumer warp before it stores its 16 of each 64 rows.
    __device__ __forceinline__ static void wait(Shared &shared, const MatrixProductParams &params) {
        if (params.parts == 1 || lane_index_reread() > 0) return; // the store begins with a barrier of the warp
        if constexpr (takes_turns) {
            int group = thread_index_reread() / 128, before = Turns<Config>::tiles_before(shared.stages) + group - 1; // the other's part
            if (before >= 0) mbarrier_wait(shared_address(&shared.added[group]), before & 1);
        } else {
            bulk_wait<0>();
        }
    }

    // Called for each 64 rows, behind the stores of all.
    __device__ __forceinline__ static void pass(Shared &shared, const MatrixProductParams &params) {
        if constexpr (takes_turns) {
            if (params.parts == 1 || lane_index_reread() > 0) return;
            bulk_wait<0>();
            mbarrier_arrive(shared_address(&shared.added[1 - thread_index_reread() / 128]));
        }
    }
};
