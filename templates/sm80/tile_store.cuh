// Stores accumulators to a matrix in memory, each thread its own elements. With Config::adds the thread first reads and adds the old elements.
// Config: out_element, adds
template <class Out> struct OutMatrix {
    Out *data;
    i64 stride;
    int rows, columns;

    // Whether two neighbouring elements can be written at once. (Pairs of accumulators begin at even columns.)
    __device__ __forceinline__ bool has_pairs() const { return ((u64)data | (u64)stride * sizeof(Out)) % (2 * sizeof(Out)) == 0; }
};

__device__ __forceinline__ float2 load_pair(const float *from) { return *(const float2 *)from; }
template <class T> __device__ __forceinline__ float2 load_pair(const T *from) {
    u32 pair = *(const u32 *)from;
    return make_float2(to_float(T{(u16)pair}), to_float(T{(u16)(pair >> 16)}));
}
__device__ __forceinline__ void store_pair(float2 values, float *to) { *(float2 *)to = values; }
template <class T> __device__ __forceinline__ void store_pair(float2 values, T *to) { *(u32 *)to = round_pair<T>(values.x, values.y); }

template <class Config> struct TileStore {
    using Out = typename Config::out_element;

    // row, column: the corner of the fragment's 16 rows (row_statistics.cuh) in the matrix.
    template <int count> __device__ __forceinline__ static void store(const OutMatrix<Out> &out, const float (&d)[count], int row, int column) {
        store_values<count>(out, row, column, [&](int i) { return d[i]; });
    }

    // Stores value(i) in the place of accumulator i. value is called once for each i, row by row, but not for rows outside the matrix.
    template <int count, class Value> __device__ __forceinline__ static void store_values(const OutMatrix<Out> &out, int row, int column, Value value) {
        int lane = lane_index_reread(), c = column_at(column, 2 * (lane % 4)), behind = columns_left(c, out.columns);
        bool has_pairs = out.has_pairs();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = row + lane / 4 + 8 * h;
            if (r >= out.rows) continue;
            Out *to = out.data + r * out.stride + c;
#pragma unroll
            for (int i = 0; i < count; i += 4) {
                int left = behind - 2 * i;
                float first = value(i + 2 * h), second = value(i + 2 * h + 1);
                if (left >= 2 && has_pairs) {
                    update_pair(make_float2(first, second), to + 2 * i);
                } else {
                    if (left >= 1) update(first, to + 2 * i);
                    if (left >= 2) update(second, to + 2 * i + 1);
                }
            }
        }
    }

    __device__ __forceinline__ static void update_pair(float2 values, Out *to) {
        if constexpr (Config::adds) {
            float2 old = load_pair(to);
            values = make_float2(values.x + old.x, values.y + old.y);
        }
        store_pair(values, to);
    }

    __device__ __forceinline__ static void update(float value, Out *to) {
        if constexpr (Config::adds) value += to_float(*to);
        store_rounded(value, to);
    }
};
