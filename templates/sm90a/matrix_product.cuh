// out (+)= factor A B on Hopper: tile_kernel.cuh's mainloop, then an epilogue that applies the factors, adds the targets' contribution and stores.
// Config: filters, keeps_in_step, in_parts, in_slabs, a_transposed, adds, takes_factors, out_is_ragged, and those of tile_kernel, product_tiles, early_start,
// product_targets and tile_store

// The gradient filter: kept_steps.cuh, emitted where Config::filters.
template <class Config> struct KeptSteps;

// Clusters synchronised with one another: clusters_in_step.cuh, emitted where Config::keeps_in_step.
template <class Config> struct ClustersInStep;

// Parts of the inner size: product_parts.cuh, emitted where Config::in_parts.
template <class Config> struct ProductParts;

// A in slabs: product_slabs.cuh, emitted where Config::in_slabs. Where A is stored [rows, inner], the sums over parts of the inner size are added to out.
template <class Config> struct ProductSlabs;
template <class Config, int turns, class HeadStart> struct PartsInOrder;
template <class Config> struct SumsInOrder;
template <class Config> constexpr bool adds_parts = Config::in_slabs && !Config::a_transposed;
template <bool in_order, class Config> struct ProductSharedOf { using type = typename ProductTargets<Config>::Shared; };
template <class Config> struct ProductSharedOf<true, Config> { using type = typename SumsInOrder<Config>::Shared; };
template <class Config> using MatrixProductShared = typename ProductSharedOf<adds_parts<Config>, Config>::type;

// Rows of out that are not a multiple of 16 bytes long: ragged_store.cuh, emitted where Config::out_is_ragged.
template <class Config> struct RaggedStore;
template <bool is_ragged, class Config> struct OutStoreOf { using type = TileStore<Config>; };
template <class Config> struct OutStoreOf<true, Config> { using type = RaggedStore<Config>; };

template <class Config> struct MatrixProduct : TileKernel<Config, MatrixProductShared<Config>> {
    using Base = TileKernel<Config, MatrixProductShared<Config>>;
    using Base::shared;
    using Out = typename Config::out_element;
    const TensorMap &out_map;
    const MatrixProductParams &params;
    ProductTargets<Config> targets;
    int rows, inner, row;

    __device__ __forceinline__ MatrixProduct(const TensorMap &a_map, const TensorMap &b_map, const TensorMap &out_map, const MatrixProductParams &params)
        : Base(a_map, b_map), out_map(out_map), params(params), targets(shared, params) {}

    __device__ __forceinline__ void init() const {
        if constexpr (adds_parts<Config>) SumsInOrder<Config>::init(shared);
        else ProductTargets<Config>::init(shared);
    }

    __device__ __forceinline__ void enter() {
        if (params.pdl_wait_in_epilogue == FLP_PDL_WAIT_FIRST) wait_for_previous_kernel();
        allow_next_kernel();
        rows = counted(params.row_count, params.rows);
        inner = counted(params.inner_count, params.inner);
        if (Config::adds && inner == 0) rows = 0; // nothing to add: no tile is computed, and out is not read
    }
    // The next kernel waits only for this one's end, so this one must not end before the previous one has.
    __device__ __forceinline__ void leave() const {
        if (params.pdl_wait_in_epilogue != FLP_PDL_WAIT_FIRST) consumers_wait_for_previous_kernel<Config>();
    }

    __device__ __forceinline__ auto walk(int turn) const {
        HeadStart<MatrixProductParams, no_limit> head = {params};
        if constexpr (adds_parts<Config>) return PartsInOrder<Config, Config::turns, decltype(head)>(params, rows, turn, head);
        else return ProductTiles<Config, Config::turns, int, decltype(head)>(rows, columns(), params.group, turn, head);
    }
    __device__ __forceinline__ int columns() const {
        if constexpr (Config::in_parts) return ProductParts<Config>{params}.columns();
        else return params.columns;
    }
    __device__ __forceinline__ int b_column(int tile) const {
        if constexpr (Config::in_parts || adds_parts<Config>) return ProductParts<Config>{params}.column(tile);
        else return Base::b_column(tile);
    }

    // Without any step along the inner size, one step past the ends of A and B is taken, which TMA fills with zeros.
    __device__ __forceinline__ auto steps(const Unit &unit) const {
        int count = ceil_div(inner, Config::block_inner);
        if constexpr (Config::in_parts) return steps_of_part(ProductParts<Config>{params}.first_inner(unit.first_tile));
        else if constexpr (Config::in_slabs) return ProductSlabs<Config>{params}.steps(unit, rows, inner);
        else if constexpr (Config::filters) return KeptSteps<Config>(count, params, unit);
        else if constexpr (Config::keeps_in_step) return ClustersInStep<Config>(count, params, walk(0), unit);
        else return count > 0 ? AllSteps<Config>{count} : AllSteps<Config>{1, ceil_div(params.inner, Config::block_inner) + 1}; // copied as zeros
    }

    // As many in every part, because warpgroups that take turns pass over as many stages as their own tile has steps. Of the last part, which may be shorter,
    // those past the end are copied as zeros.
    __device__ __forceinline__ AllSteps<Config> steps_of_part(int first) const {
        return {divide(params.part_inner, Config::block_inner), divide(first, Config::block_inner)};
    }

    template <class Steps> __device__ __forceinline__ int steps_before(const Unit &unit, const Steps &steps) const {
        if constexpr (adds_parts<Config>) return ProductSlabs<Config>{params}.steps_before(unit, inner);
        else return Base::steps_before(unit, steps);
    }

    // The second warp of the producer's warpgroup looks up targets (target_lookahead.cuh).
    template <class Walk> __device__ __forceinline__ void assist(const Walk &walk, int rank) const {
        if (warp_index() % 4 == 1) ProductTargets<Config>::look_up(shared, params, walk.of_all_turns(), rank, inner);
    }

    __device__ __forceinline__ void begin(const Unit &unit, int first) {
        row = first;
        if constexpr (Config::turns == 1) targets.start(row, unit.first_tile * Config::block_columns);
    }

    template <int count> __device__ __forceinline__ void consume(float (&d)[count], bool, int tile, int steps) {
        int column = b_column(tile), to = row;
        if constexpr (Config::in_parts) to += (int)ProductParts<Config>{params}.first_row(tile);
        if constexpr (Config::filters) {
            if (steps == 0) // no wgmma has written the accumulators
#pragma unroll
                for (int i = 0; i < count; i++) d[i] = 0;
        }
        if constexpr (Config::takes_factors) scale_product(d, params, row, rows);
        targets.add(d, rows, inner, row, column, shared.out.box[warp_index()]);
        OutMatrix<Out> old = {(const Out *)params.out, params.out_stride, rows, params.columns};
        if (params.pdl_wait_in_epilogue == FLP_PDL_WAIT_BEFORE_STORE) wait_before_store<Config>(shared.stages, params);
        if constexpr (adds_parts<Config>) SumsInOrder<Config>::wait(shared, params);
        OutStoreOf<Config::out_is_ragged, Config>::type::store(shared.out, out_map, old, d, to, column);
    }

    __device__ __forceinline__ void finish(const Unit &) {
        if constexpr (adds_parts<Config>) SumsInOrder<Config>::pass(shared, params);
    }
    __device__ __forceinline__ void drain() const { TileStore<Config>::finish(); }
};

template <class Config>
__device__ __forceinline__ void matrix_product(const TensorMap &a_map, const TensorMap &b_map, const TensorMap &out_map, const MatrixProductParams &params) {
    run_tile_kernel<Config>(MatrixProduct<Config>(a_map, b_map, out_map, params));
}
