// linear_logp forward on Hopper: hidden (A) times weight (B), statistics of each row.
// Config: those of tile_kernel, schedule and row_statistics
template <class Config> struct LinearLogpShared { Stages<Config> stages; };

template <class Config> struct LinearLogp : TileKernel<Config, LinearLogpShared<Config>> {
    using Base = TileKernel<Config, LinearLogpShared<Config>>;
    const LinearLogpParams &params;
    RowStatistics<Config> statistics;
    bool has_rows; // else the warp only takes its part in the products

    __device__ __forceinline__ LinearLogp(const TensorMap &hidden_map, const TensorMap &weight_map, const LinearLogpParams &params)
        : Base(hidden_map, weight_map), params(params) {}

    __device__ __forceinline__ void prepare() const {
        TileProduct<Config>::clear_a(this->shared.stages, params.rows);
        allow_next_kernel(); // the combine waits for this kernel's end, but not for its own launch
    }

    __device__ __forceinline__ auto walk(int turn) const { return Schedule<Config, Config::turns>(params, turn); }
    __device__ __forceinline__ int a_rows() const { return TileProduct<Config>::box_rows(params.rows); }

    __device__ __forceinline__ void begin(const Unit &, int row) {
        has_rows = Config::consumer_groups > 1 || row < row_count<Config>(params);
        statistics.begin(params, row);
    }

    template <int count> __device__ __forceinline__ void consume(float (&d)[count], const Unit &unit, int tile, int) {
        if (has_rows) statistics.absorb(params, d, tile * Config::block_columns, tile == unit.first_tile);
    }

    __device__ __forceinline__ void finish(const Unit &unit) {
        statistics.finish();
        statistics.store(params, unit.split);
    }

    // Here the statistics of both parts are held in registers, too.
    static constexpr bool emits_parts_once =
        !Config::has_softcap && !(Config::has_bias && Config::wants_argmax) && (Config::turns == 1 || Config::fragment_columns < 192);
    __device__ __forceinline__ bool exchange(LinearLogp &other) {
        int row = statistics.first_row ^ 64; // of the same 128: no register for the other's
        exchange_values(statistics, other.statistics);
        statistics.first_row = row;
        return row & 64;
    }
};

template <class Config> __device__ __forceinline__ void linear_logp(const TensorMap &hidden_map, const TensorMap &weight_map, const LinearLogpParams &params) {
    run_tile_kernel<Config>(LinearLogp<Config>(hidden_map, weight_map, params));
}
