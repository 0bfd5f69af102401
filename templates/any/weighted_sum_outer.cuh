// grad_x = outer(g, w): a thread holds one vector of w, and writes its product with g to a few rows.
//
// Blocks are short-lived and follow the order of memory, so that at any time the device writes to one narrow window of it. (Persistent blocks that each have
// a part of the rows write 5 to 15 % slower.)
// Config: element, weight_element, gradient_element, unroll, vector_bytes

// Stores bytes / sizeof(Element) elements to an address that is a multiple of `bytes`; the elements from `valid` on are not written.
template <class Element, int bytes> __device__ __forceinline__ void store_floats(const float *values, int valid, Element *to) {
    constexpr int count = bytes / (int)sizeof(Element);
    if (valid < count) {
#pragma unroll
        for (int i = 0; i < count; i++)
            if (i < valid) store_rounded(values[i], to + i);
        return;
    }
    if constexpr (count == 1) {
        store_rounded(values[0], to);
    } else {
        u32 words[bytes / 4];
#pragma unroll
        for (int i = 0; i < bytes / 4; i++) {
            if constexpr (sizeof(Element) == 4) words[i] = __float_as_uint(values[i]);
            else words[i] = round_pair<Element>(values[2 * i], values[2 * i + 1]);
        }
        if constexpr (bytes == 16) *(Vector *)to = Vector{{words[0], words[1], words[2], words[3]}};
        else if constexpr (bytes == 8) *(HalfVector *)to = HalfVector{{words[0], words[1]}};
        else *(u32 *)to = words[0];
    }
}

template <class Config> __device__ __forceinline__ void weighted_sum_outer(const WeightedSumOuterParams &params) {
    using Element = typename Config::element;
    constexpr int count = Config::vector_bytes / (int)sizeof(Element);
    ColumnBlock<Config> block(ceil_div(params.columns, count), params.slab, params.slabs, params.lanes);
    if (!block.is_used) return;
    int valid = params.columns - block.vector * count;
    float w[count];
    load_floats((const typename Config::weight_element *)params.w + block.vector * count, valid, w);

    int first = block.row_block * params.lanes * Config::unroll + block.lane; // rows stay below 2^29
    auto g = (const typename Config::gradient_element *)params.g;
    float scale[Config::unroll];
#pragma unroll
    for (int i = 0; i < Config::unroll; i++) {
        int row = first + i * params.lanes;
        scale[i] = row < params.rows ? to_float(g[row]) : 0;
    }
#pragma unroll
    for (int i = 0; i < Config::unroll; i++) {
        int row = first + i * params.lanes;
        if (row >= params.rows) return;
        float product[count];
#pragma unroll
        for (int j = 0; j < count; j++) product[j] = scale[i] * w[j];
        store_floats<Element, Config::vector_bytes>(product, valid, (Element *)params.grad_x + (i64)row * params.grad_x_stride + (i64)block.vector * count);
    }
}
