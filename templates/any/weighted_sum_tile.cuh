// grad_w of one tile of rows: partial[tile, d] = sum of g[row] x[row, d] over the tile's rows.
//
// The order of a column's additions: lane l of the block (one of `lanes` groups of threads, column_block.cuh) adds the tile's rows l, l + lanes, ... in turn,
// then the lanes are added pairwise. The combine adds the tiles, where there is more than one. How rows are cut into tiles and lanes depends only on (rows,
// columns, element) (runtime/operators/weighted_sum/weighted_sum_plan.h).
// Config: element, gradient_element, weight_gradient_element, threads, unroll, vector_bytes, shared_bytes
template <class Config> struct SharedStorage {
    // The sums of the upper half of the lanes, stored by position in the vector, so that neighbouring threads access neighbouring words.
    float sums[vector_elements<typename Config::element>][Config::threads / 2];
};

template <class Config> struct TileColumns {
    using Element = typename Config::element;
    using Gradient = typename Config::gradient_element;
    static constexpr int elements = vector_elements<Element>;
    float sum[elements];

    // Adds the rows first, first + hop, ... below end.
    __device__ __forceinline__ void add_rows(const WeightedSumTileParams &params, i64 first, i64 end, int hop, int vector) {
        int valid = params.columns - vector * elements;
        auto x = (const Element *)params.x + first * params.x_stride + (i64)vector * elements;
        auto g = (const Gradient *)params.g + first;
        i64 x_hop = hop * params.x_stride;
#pragma unroll
        for (int i = 0; i < elements; i++) sum[i] = 0;
        i64 left = end - first; // the tile's rows from here on, those of other lanes included
        if (valid >= elements) {
            for (; left > (i64)hop * (Config::unroll - 1); left -= (i64)hop * Config::unroll) {
                add_batch<true>(x, g, x_hop, hop, left);
                x += Config::unroll * x_hop;
                g += Config::unroll * hop;
            }
            if (left > 0) add_batch<false>(x, g, x_hop, hop, left);
        } else {
            for (; left > 0; left -= hop, x += x_hop, g += hop) add_one(load_some(x, valid), to_float(*g));
        }
    }

    __device__ __forceinline__ void add_one(const Vector &vector, float scale) {
        float values[elements];
        widen<Element>(vector, values);
#pragma unroll
        for (int i = 0; i < elements; i++) sum[i] = fmaf(scale, values[i], sum[i]);
    }

    // Adds `unroll` of the lane's rows, with all of their loads in flight at once; without is_whole only the rows that are left.
    template <bool is_whole> __device__ __forceinline__ void add_batch(const Element *x, const Gradient *g, i64 x_hop, int hop, i64 left) {
        Vector loaded[Config::unroll];
        float scale[Config::unroll];
#pragma unroll
        for (int i = 0; i < Config::unroll; i++) {
            bool is_there = is_whole || (i64)i * hop < left;
            loaded[i] = is_there ? load_words<Config::vector_bytes>(x + i * x_hop) : Vector{{0, 0, 0, 0}};
            scale[i] = is_there ? to_float(g[(i64)i * hop]) : 0;
        }
#pragma unroll
        for (int i = 0; i < Config::unroll; i++) add_one(loaded[i], scale[i]);
    }

    // Adds the upper half of the lanes to the lower half until one lane is left. All threads of the block must call it.
    __device__ __forceinline__ void add_lanes(SharedStorage<Config> &shared, int lanes, int lane, int slab) {
        int place = threadIdx.x % slab;
        while (lanes > 1) {
            int half = (lanes + 1) / 2;
            block_barrier();
            if (lane >= half && lane < lanes)
#pragma unroll
                for (int i = 0; i < elements; i++) shared.sums[i][(lane - half) * slab + place] = sum[i];
            block_barrier();
            if (lane + half < lanes)
#pragma unroll
                for (int i = 0; i < elements; i++) sum[i] += shared.sums[i][lane * slab + place];
            lanes = half;
        }
    }

    __device__ __forceinline__ void leave(const WeightedSumTileParams &params, i64 at) const {
#pragma unroll
        for (int i = 0; i < elements; i += 4)
            *(Vector *)(params.partial + at + i) =
                Vector{{__float_as_uint(sum[i]), __float_as_uint(sum[i + 1]), __float_as_uint(sum[i + 2]), __float_as_uint(sum[i + 3])}};
    }

    __device__ __forceinline__ void store(const WeightedSumTileParams &params, int vector) const {
        auto to = (typename Config::weight_gradient_element *)params.grad_w + (i64)vector * elements;
#pragma unroll
        for (int i = 0; i < elements; i++)
            if (vector * elements + i < params.columns) store_rounded(params.accumulate ? to_float(to[i]) + sum[i] : sum[i], to + i);
    }
};

template <class Config> __device__ __forceinline__ void weighted_sum_tile(const WeightedSumTileParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/kernels/weighted_sum_tile.lua disagrees");
    using Columns = TileColumns<Config>;
    int vectors = ceil_div(params.columns, Columns::elements);
    ColumnBlock<Config> block(vectors, params.slab, params.slabs, params.lanes);
    i64 first = block.row_block * params.tile_rows, end = min(first + params.tile_rows, params.rows);
    allow_next_kernel();
    Columns columns;
    columns.add_rows(params, first + block.lane, block.is_used ? end : 0, params.lanes, block.vector);
    columns.add_lanes(shared, params.lanes, block.lane, params.slab);
    if (block.lane != 0 || !block.is_used) return;
    if (params.tiles == 1) // nothing to combine
        columns.store(params, block.vector);
    else columns.leave(params, ((i64)block.row_block * vectors + block.vector) * Columns::elements);
}
