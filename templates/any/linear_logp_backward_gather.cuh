// Copies the valid rows of hidden to contiguous rows, and sets to 0 the sums to which the products of grad_hidden add. The last valid row is followed by rows
// of zeros up to a multiple of FLP_BACKWARD_ROW_BLOCK: the last step of grad_weight's product reads them, and 0 times NaN would not be 0.
// Config: element, threads
template <class T> __device__ __forceinline__ Vector multiply(const Vector &vector, float factor) {
    float values[vector_elements<T>];
    widen<T>(vector, values);
#pragma unroll
    for (int i = 0; i < vector_elements<T>; i++) values[i] *= factor;
    return narrow<T>(values);
}

template <class Config> __device__ __forceinline__ void gather_rows(const BackwardGatherParams &params) {
    using element = typename Config::element;
    constexpr int elements = vector_elements<element>;
    auto hidden = (const element *)params.hidden;
    auto packed = (element *)params.packed;
    if (params.mark && blockIdx.x == 0 && threadIdx.x == 0) *params.mark = 0;
    if (params.skips_whole && *params.count == params.rows) return;
    int count = *params.count, whole_blocks = (count + (FLP_BACKWARD_ROW_BLOCK - 1)) / FLP_BACKWARD_ROW_BLOCK * FLP_BACKWARD_ROW_BLOCK;
    int filled = min(whole_blocks, params.rows), vectors = ceil_div(params.hidden_size, elements);
    for (int r = blockIdx.x; r < filled; r += gridDim.x) {
        i64 source = r >= count ? 0 : params.row ? params.row[r] : r;
        const element *from = hidden + source * params.hidden_stride;
        float factor = r < count && params.row_factor ? params.row_factor[r] : 1;
        for (int v = threadIdx.x; v < vectors; v += Config::threads) {
            int d = v * elements, valid = r < count ? params.hidden_size - d : 0;
            Vector vector = load_anywhere(from + d, valid);
            if (params.row_factor) vector = multiply<element>(vector, factor);
            store_anywhere(vector, packed + r * params.packed_stride + d, params.hidden_size - d);
        }
        if (!params.sums) continue;
        float *sums = params.sums + (i64)r * params.hidden_size;
#pragma unroll 1
        for (int d = 4 * threadIdx.x; d < params.hidden_size; d += 4 * Config::threads) store_anywhere(Vector{{0, 0, 0, 0}}, sums + d, params.hidden_size - d);
    }
}

template <class Config> __device__ __forceinline__ void linear_logp_backward_gather(const BackwardGatherParams &params) {
    enter_kernel(params.pdl_wait_last);
    gather_rows<Config>(params);
    leave_kernel(params.pdl_wait_last);
}
