// The first launch of linear_logp_save_exp's forward: the rows' offsets and the cleared overflow flags (saved_exp_statistics.cuh).
//
// The offsets come from the vocabulary's first columns, and linear_logp_save_exp itself would compute them from a whole tile: with few rows one block, which
// multiplies a tile while all other multiprocessors wait. This kernel multiplies those columns alone, for 64 rows a block: the same offsets, bit by bit, in a
// third of the time. Overflow flags are cleared by blocks of 64 rows, which are at least as many as those of any tile.
// Config: those of statistics_kernel and saved_exp_statistics
template <class Config> struct OffsetsShared { Stages<Config> stages; };

template <class Config> struct LinearLogpOffsets : StatisticsKernel<Config, OffsetsShared<Config>, SavedExpStatistics<Config, true>> {
    using Base = StatisticsKernel<Config, OffsetsShared<Config>, SavedExpStatistics<Config, true>>;
    using Base::Base;
    using Base::params, Base::statistics;
    static_assert(Config::block_columns == 2 * SavedExpStatistics<Config, true>::first_look, "no more columns than the offsets come from");

    __device__ __forceinline__ void enter() {
        wait_for_previous_kernel();
        allow_next_kernel(); // the tiles' kernel may be launched now; it waits for this kernel's end itself
    }

    __device__ __forceinline__ auto walk(int turn) const { return Schedule<Config, Config::turns>(params, turn); }

    template <int count> __device__ __forceinline__ void consume(float (&d)[count], bool, int, int) {
        statistics.absorb(params, d, 0, [](auto) {});
    }

    __device__ __forceinline__ void finish(const Unit &) const {}
};

template <class Config>
__device__ __forceinline__ void linear_logp_offsets(const TensorMap &hidden_map, const TensorMap &weight_map, const LinearLogpParams &params) {
    run_tile_kernel<Config>(LinearLogpOffsets<Config>(hidden_map, weight_map, params));
}
