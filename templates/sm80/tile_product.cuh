// The portable mainloop: cp.async streams tiles of A and B through a ring of shared-memory stages, and each warp multiplies its warp_rows x warp_columns part
// of the output tile.
//
// The feed that issues the copies runs ahead of the products, across the boundaries of tiles, so that the pipeline does not drain before the block's last
// tile. It takes the tiles from a walk: at_end(), row() and column() of the tile's corner, inner() at which its sum begins, and next().
// Config: stages, block_inner, warp_rows, warp_columns, warps_across, and those of shared_tile, tensor_product and exact_product
template <class Config> struct alignas(128) Stages { u8 stage[Config::stages][Operands<Config>::stage_bytes]; };

// The position in the stream of stages to be loaded. It is held in registers during the products, so it is as small as possible.
template <class Config, class Walk> struct Feed {
    Walk walk;
    int step = 0;
    __device__ __forceinline__ Feed(const Walk &walk) : walk(walk) {}

    __device__ __forceinline__ void load(u32 stage, const OperandMatrices<typename Config::element> &of, int steps) {
        if (!walk.at_end()) {
            Operands<Config>::load(stage, of, walk.row(), walk.column(), walk.inner() + step * Config::block_inner);
            if (++step == steps) {
                step = 0;
                walk.next();
            }
        }
        cp_async_commit(); // after the last tile the groups are empty, but cp_async_wait still counts them
    }
};

template <class Config> struct TileProduct {
    using Matrices = OperandMatrices<typename Config::element>;
    static constexpr int row_blocks = Config::warp_rows / 16, accumulators = Config::warp_columns / 2;
    Stages<Config> &shared;
    int stage = 0;
    int row, column; // the warp's corner in the tile

    __device__ __forceinline__ TileProduct(Stages<Config> &shared)
        : shared(shared), row(warp_index() / Config::warps_across * Config::warp_rows), column(warp_index() % Config::warps_across * Config::warp_columns) {}

    template <class Walk> __device__ __forceinline__ void start(Feed<Config, Walk> &feed, const Matrices &of, int steps) {
        for (int s = 0; s < Config::stages - 1; s++) feed.load(shared_address(shared.stage[s]), of, steps);
    }

    // d = the warp's part of the next tile, in blocks of 16 rows.
    template <class Walk>
    __device__ __forceinline__ void multiply(float (&d)[row_blocks][accumulators], Feed<Config, Walk> &feed, const Matrices &of, int steps) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++)
#pragma unroll
            for (int j = 0; j < accumulators; j++) d[i][j] = 0;
        for (int step = 0; step < steps; step++) {
            cp_async_wait<Config::stages - 2>();
            block_barrier(); // the stage has arrived for all threads, and none still reads the stage that is filled next
            feed.load(shared_address(shared.stage[stage == 0 ? Config::stages - 1 : stage - 1]), of, steps);
            StageProduct<Config>::multiply(d, shared_address(shared.stage[stage]), row, column);
            stage = stage + 1 == Config::stages ? 0 : stage + 1;
        }
    }
};
