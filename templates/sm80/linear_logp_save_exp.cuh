// linear_logp's forward on any GPU from sm_80 on, which also saves the exponentials 2^(z2 - k) of the first columns for the gradients.
//
// The warps that share a row all begin with the row's offset. One of them may have to raise it; when their statistics are merged, the largest offset remains,
// and it is noted then, once, that the row has left its offset.
// Config: those of tile_kernel, schedule, warp_statistics, saved_exp_statistics and tile_store
template <class Config> struct SavedExpRows : WarpStatistics<Config, SavedExpStatistics<Config>> {
    using WarpStatistics<Config, SavedExpStatistics<Config>>::row_blocks;
    using WarpStatistics<Config, SavedExpStatistics<Config>>::statistics;

    template <int count> __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&d)[row_blocks][count], int row, int column) {
        if (statistics[0].finds_offsets(params) && warp_index() % Config::warps_across > 0) return; // only the first warp has the first columns
        using Out = typename Config::out_element;
        static_assert(Config::fragment_columns % FLP_SAVED_BLOCK_UNIT == 0, "a fragment lies in one block");
        int first = 0, to = column, width = params.saved_block_columns;
        SavedExpPlace{params}(first, to);
        const OutMatrix<Out> out = {(Out *)params.saved_exp + (i64)first * width, width, (int)row_count<Config>(params),
                                    column < params.saved_columns ? width : 0};
#pragma unroll
        for (int i = 0; i < row_blocks; i++)
            statistics[i].absorb(params, d[i], column, [&](auto value) { TileStore<Config>::template store_values<count>(out, row + 16 * i, to, value); });
    }
};

template <class Config> struct LinearLogpSaveExp : TileKernel<Config, StatisticsShared<Config>> {
    const LinearLogpParams &params;
    SavedExpRows<Config> warp;

    __device__ __forceinline__ LinearLogpSaveExp(const LinearLogpParams &params) : params(params) {}

    __device__ __forceinline__ auto operands() const { return forward_operands<Config>(params); }
    __device__ __forceinline__ SaveExpUnits<Config> walk() const { return SaveExpUnits<Config>(params); }
    __device__ __forceinline__ int first_column() const { return params.first_tile * Config::block_columns; }
    __device__ __forceinline__ void begin(int row) { warp.begin(params, row); }

    template <int blocks, int count> __device__ __forceinline__ void consume(float (&d)[blocks][count], int row, int column, const Unit &, bool) {
        warp.absorb(params, d, row, column_at(first_column(), column));
    }

    __device__ __forceinline__ void finish(int row, const Unit &unit) {
        if (params.phase == FLP_SAVE_EXP_KEEP || params.phase == FLP_SAVE_EXP_AGAIN) warp.finish(this->shared, params, row, unit.split);
    }
};

template <class Config> __device__ __forceinline__ void linear_logp_save_exp(const LinearLogpParams &params) {
    run_tile_kernel<Config>(LinearLogpSaveExp<Config>(params));
}
