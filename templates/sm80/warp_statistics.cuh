// What the portable forward kernels have in common: their operands, and the merge of the statistics of warps that share rows.
// Config: block_rows, inner_size, warp_rows, warps_across, and those of tile_product and row_statistics
template <class Config> struct StatisticsShared {
    Stages<Config> stages;
    float merge[Config::warps_across][Config::block_rows][RowStatistics<Config>::merge_floats]; // offset, sum, best, its index, moment, logit sum
};

template <class Config> __device__ __forceinline__ OperandMatrices<typename Config::element> forward_operands(const LinearLogpParams &params) {
    using element = typename Config::element;
    return {(const element *)params.hidden,
            (const element *)params.weight,
            params.hidden_stride,
            params.weight_stride,
            row_count<Config>(params),
            params.vocab,
            Config::inner_size};
}

// The statistics of a warp's rows. Statistics: RowStatistics or a struct that extends it.
template <class Config, class Statistics> struct WarpStatistics {
    static constexpr int row_blocks = Config::warp_rows / 16;
    Statistics statistics[row_blocks];

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int row) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++) statistics[i].begin(params, row + 16 * i);
    }

    // The warps that share rows write their statistics to shared memory, and the first of these warps merges them in the order of their columns. row: the
    // warp's first row in the tile.
    __device__ __forceinline__ void finish(StatisticsShared<Config> &shared, const LinearLogpParams &params, int row, int split) {
        int across = warp_index() % Config::warps_across;
#pragma unroll
        for (int i = 0; i < row_blocks; i++) {
            statistics[i].finish();
            if (across > 0) statistics[i].leave(shared.merge[across] + row + 16 * i);
        }
        block_barrier();
        if (across == 0) {
#pragma unroll
            for (int i = 0; i < row_blocks; i++) {
                for (int other = 1; other < Config::warps_across; other++) statistics[i].merge(shared.merge[other] + row + 16 * i);
                statistics[i].store(params, split);
            }
        }
        block_barrier();
    }
};
