// linear_logp forward on Hopper that keeps the terms of each row's sum, for the gradients: [rows, saved exponentials columns] of 2^(z2 - k).
// Config: those of tile_kernel, save_exp_units, saved_exp_statistics and tile_store

// Where warpgroups take turns, their statistics wait here while they multiply: registers are few.
template <class Config, bool takes_turns = (Config::turns > 1)> struct LinearLogpStashShared : ProductShared<Config> {};
template <class Config> struct LinearLogpStashShared<Config, true> : ProductShared<Config> {
    KeptStatistics<Config::consumer_groups * 128> kept[Config::group_rows / 64];
};

template <class Config> struct LinearLogpStash : TileKernel<Config, LinearLogpStashShared<Config>> {
    using Base = TileKernel<Config, LinearLogpStashShared<Config>>;
    const TensorMap &saved_exp_map;
    const LinearLogpParams &params;
    SavedExpStatistics<Config> statistics;
    int row;

    __device__ __forceinline__ LinearLogpStash(const TensorMap &hidden_map, const TensorMap &weight_map, const TensorMap &saved_exp_map,
                                               const LinearLogpParams &params)
        : Base(hidden_map, weight_map), saved_exp_map(saved_exp_map), params(params) {}

    __device__ __forceinline__ void prepare() const { TileProduct<Config>::clear_a(this->shared.stages, params.rows); }
    __device__ __forceinline__ void enter() {
        wait_for_previous_kernel();
        allow_next_kernel(); // the combine waits for this kernel's end, but not for its own launch
    }

    __device__ __forceinline__ auto walk(int turn) const { return SaveExpUnits<Config, Config::turns>(params, turn); }
    __device__ __forceinline__ int b_column(int tile) const { return (tile + (Config::turns > 1 ? 0 : params.first_tile)) * Config::block_columns; }
    __device__ __forceinline__ int a_rows() const { return TileProduct<Config>::box_rows(params.rows); }
    __device__ __forceinline__ bool finds_offsets() const { return params.phase == FLP_SAVE_EXP_OFFSETS; }

    __device__ __forceinline__ auto &kept() const { return this->shared.kept[row / 64 % (Config::group_rows / 64)]; }
    __device__ __forceinline__ void lay_down() {
        if constexpr (Config::turns > 1) statistics.lay_down(kept());
    }
    __device__ __forceinline__ void take_up() {
        if constexpr (Config::turns > 1) statistics.take_up(kept(), row);
    }

    __device__ __forceinline__ void begin(const Unit &, int first) {
        row = first;
        if (finds_offsets()) return;
        statistics.begin(params, row);
        lay_down();
    }

    template <int count> __device__ __forceinline__ void consume(float (&d)[count], const Unit &unit, int tile, int) {
        int column = b_column(tile);
        if (finds_offsets()) return statistics.find_offsets(params, d, row);
        take_up();
        statistics.absorb(params, d, column,
                          [&](auto value) { TileStore<Config>::store_values(this->shared.out, saved_exp_map, row, column, value, SavedExpPlace{params}); });
        lay_down();
    }

    __device__ __forceinline__ void finish(const Unit &unit) {
        if (finds_offsets() || params.phase == FLP_SAVE_EXP_BLOCK) return;
        take_up();
        statistics.finish();
        statistics.store(params, unit.split);
    }

    __device__ __forceinline__ void drain() const { TileStore<Config>::finish(); }
};

template <class Config> __device__ __forceinline__ void linear_logp_save_exp(const TensorMap &hidden_map, const TensorMap &weight_map,
                                                                             const TensorMap &saved_exp_map, const LinearLogpParams &params) {
    run_tile_kernel<Config>(LinearLogpStash<Config>(hidden_map, weight_map, saved_exp_map, params));
}
