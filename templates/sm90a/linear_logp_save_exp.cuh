// linear_logp's forward on Hopper, which also saves the exponentials 2^(z2 - k) of the first columns for the gradients (saved_exp_statistics.cuh).
// Config: those of statistics_kernel, schedule, saved_exp_statistics and tile_store
template <class Config> struct LinearLogpSaveExp : StatisticsKernel<Config, ProductShared<Config>, SavedExpStatistics<Config>> {
    using Base = StatisticsKernel<Config, ProductShared<Config>, SavedExpStatistics<Config>>;
    using Base::params, Base::statistics, Base::row;
    const TensorMap &saved_exp_map;

    __device__ __forceinline__ LinearLogpSaveExp(const TensorMap &hidden_map, const TensorMap &weight_map, const TensorMap &saved_exp_map,
                                                 const LinearLogpParams &params)
        : Base(hidden_map, weight_map, params), saved_exp_map(saved_exp_map) {}

    __device__ __forceinline__ void enter() {
        wait_for_previous_kernel();
        allow_next_kernel(); // the combine may be launched now; it waits for this kernel's end itself
    }

    __device__ __forceinline__ auto walk(int turn) const { return SaveExpUnits<Config, Config::turns>(params, turn); }
    __device__ __forceinline__ int b_column(int tile) const { return (tile + (Config::turns > 1 ? 0 : params.first_tile)) * Config::block_columns; }

    template <int count> __device__ __forceinline__ void consume(float (&d)[count], bool, int tile, int) {
        int column = b_column(tile);
        Base::take_up();
        statistics.absorb(params, d, column, [&](auto value) {
            TileStore<Config>::store_values(this->shared.out, saved_exp_map, row, column, value, SavedExpPlace{params}, column < params.saved_columns);
        });
        Base::lay_down();
    }

    __device__ __forceinline__ void finish(const Unit &unit) {
        if (statistics.finds_offsets(params) || params.phase == FLP_SAVE_EXP_BLOCK) return;
        Base::take_up();
        statistics.finish();
        statistics.store(params, unit.split);
    }

    __device__ __forceinline__ void drain() const { TileStore<Config>::finish(); }
};

template <class Config> __device__ __forceinline__ void linear_logp_save_exp(const TensorMap &hidden_map, const TensorMap &weight_map,
                                                                             const TensorMap &saved_exp_map, const LinearLogpParams &params) {
    run_tile_kernel<Config>(LinearLogpSaveExp<Config>(hidden_map, weight_map, saved_exp_map, params));
}
