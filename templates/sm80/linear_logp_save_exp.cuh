// linear_logp forward on any GPU from sm_80 on that keeps the terms of each row's sum, for the gradients: [rows, saved exponentials columns] of 2^(z2 - k).
//
// The warps that share a row begin with one offset. One of them may go on with another; where they merge, the larger one stays, and that the
// row has left its offset is noted there, once.
// Config: inner_size, and those of tile_kernel, save_exp_units, warp_statistics, saved_exp_statistics and tile_store
template <class Config> struct SavedExpRows : WarpStatistics<Config, SavedExpStatistics<Config>> {
    using WarpStatistics<Config, SavedExpStatistics<Config>>::row_blocks;
    using WarpStatistics<Config, SavedExpStatistics<Config>>::statistics;

    // By the first of the warps that share rows, which has the vocabulary's first columns.
    template <int count> __device__ __forceinline__ void find_offsets(const LinearLogpParams &params, float (&d)[row_blocks][count], int row) {
        if (warp_index() % Config::warps_across > 0) return;
#pragma unroll
        for (int i = 0; i < row_blocks; i++) statistics[i].find_offsets(params, d[i], row + 16 * i);
    }

    template <int count> __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&d)[row_blocks][count], int row, int column) {
        using Out = typename Config::out_element;
        const OutMatrix<Out> out = {(Out *)params.saved_exp, params.saved_columns, (int)row_count<Config>(params), params.saved_columns};
#pragma unroll
        for (int i = 0; i < row_blocks; i++)
            statistics[i].absorb(params, d[i], column, [&](auto value) { TileStore<Config>::template store_values<count>(out, row + 16 * i, column, value); });
    }
};

template <class Config> struct LinearLogpSaveExp : TileKernel<Config, StatisticsShared<Config>> {
    const LinearLogpParams &params;
    SavedExpRows<Config> warp;

    __device__ __forceinline__ LinearLogpSaveExp(const LinearLogpParams &params) : params(params) {}

    __device__ __forceinline__ auto operands() const { return forward_operands<Config>(params); }
    __device__ __forceinline__ SaveExpUnits<Config> walk() const { return SaveExpUnits<Config>(params); }
    __device__ __forceinline__ bool finds_offsets() const { return params.phase == FLP_SAVE_EXP_OFFSETS; }

    __device__ __forceinline__ void begin(int row) {
        if (!finds_offsets()) warp.begin(params, row);
    }

    template <int blocks, int count> __device__ __forceinline__ void consume(float (&d)[blocks][count], int row, int column, const Unit &, bool) {
        if (finds_offsets()) warp.find_offsets(params, d, row);
        else warp.absorb(params, d, row, column);
    }

    __device__ __forceinline__ void finish(int row, const Unit &unit) {
        if (!finds_offsets()) warp.finish(this->shared, params, row, unit.split);
    }
};

template <class Config> __device__ __forceinline__ void linear_logp_save_exp(const LinearLogpParams &params) {
    run_tile_kernel<Config>(LinearLogpSaveExp<Config>(params));
}
