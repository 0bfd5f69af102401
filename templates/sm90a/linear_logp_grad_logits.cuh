// The derivatives of the loss by a chunk of the logits on Hopper: tile_kernel.cuh's mainloop multiplies hidden (A) by weight (B), the epilogue turns logits
// into derivatives and stores them.
// Config: filters, and those of tile_kernel, product_tiles, early_start, tile_grad_logits and tile_store
template <class Config> struct LinearLogpGradLogits : TileKernel<Config, ProductShared<Config>> {
    using Base = TileKernel<Config, ProductShared<Config>>;
    const TensorMap &out_map;
    const GradLogitsParams &params;
    TileGradLogits<Config> gradients;
    int row;

    __device__ __forceinline__ LinearLogpGradLogits(const TensorMap &hidden_map, const TensorMap &weight_map, const TensorMap &out_map,
                                                    const GradLogitsParams &params)
        : Base(hidden_map, weight_map), out_map(out_map), params(params) {}

    __device__ __forceinline__ void enter() const {
        if (!params.pdl_wait_in_epilogue) wait_for_previous_kernel();
        allow_next_kernel();
    }
    // The next kernel waits only for this one's end, so this one must not end before the previous one has.
    __device__ __forceinline__ void leave() const {
        if (params.pdl_wait_in_epilogue) consumers_wait_for_previous_kernel<Config>();
    }

    __device__ __forceinline__ auto walk(int turn) const {
        CountedRows<GradLogitsParams> rows = {params};
        HeadStart<GradLogitsParams, Config::turns> head = {params};
        if constexpr (Config::turns > 1)
            return ProductTiles<Config, Config::turns, decltype(rows), decltype(head)>(rows, params.columns, params.group, turn, head);
        else return ProductTiles<Config, 1, int, decltype(head)>(rows, params.columns, params.group, 0, head);
    }
    __device__ __forceinline__ int b_column(int tile) const { return params.first_column + tile * Config::block_columns; }

    // In the ping-pong schedule, the rows' coefficients are not held in registers during the products. Each epilogue loads them again, during the other
    // warpgroup's products.
    __device__ __forceinline__ void begin(const Unit &, int first) {
        row = first;
        if constexpr (Config::turns == 1) gradients.begin(params, row);
    }

    template <int count> __device__ __forceinline__ void consume(float (&d)[count], bool, int tile, int) {
        if constexpr (Config::turns > 1) gradients.begin(params, row);
        gradients.transform(params, d, b_column(tile));
        if constexpr (Config::filters) note_kept(params.kept, params.kept_words, params.filter * *params.factor, d, row, tile * Config::block_columns);
        if (params.pdl_wait_in_epilogue) wait_before_store<Config>(this->shared.stages, params);
        TileStore<Config>::store(this->shared.out, out_map, {}, d, row, tile * Config::block_columns);
    }

    // With options that work in chunks there are no registers for it.
    static constexpr bool emits_parts_once = Config::turns > 1 && !TileGradLogits<Config>::by_chunks;
    __device__ __forceinline__ bool exchange(LinearLogpGradLogits &) { return (row ^= 64) & 64; }

    __device__ __forceinline__ void finish(const Unit &) {}
    __device__ __forceinline__ void drain() const { TileStore<Config>::finish(); }
};

template <class Config> __device__ __forceinline__ void linear_logp_grad_logits(const TensorMap &hidden_map, const TensorMap &weight_map,
                                                                                const TensorMap &out_map, const GradLogitsParams &params) {
    run_tile_kernel<Config>(LinearLogpGradLogits<Config>(hidden_map, weight_map, out_map, params));
}
