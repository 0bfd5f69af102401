// Stores accumulators to a matrix whose rows are not a multiple of 16 bytes long. TMA writes only whole units of 16 bytes, and would overwrite what follows
// such a row. So the tensor map ends with each row's last whole unit, and the rest of a row, less than 16 bytes, is stored by the threads that have it.
// Config: those of tile_store
template <class Config> struct RaggedStore {
    using Engine = TileStore<Config>;
    using Out = typename Engine::Out;
    static constexpr int elements = FLP_ENGINE_BYTES / sizeof(Out);

    template <int count> __device__ __forceinline__ static void store(typename Engine::Shared &shared, const TensorMap &map, const OutMatrix<Out> &out,
                                                                      float (&d)[count], int row, int column) {
        int whole = out.columns / elements * elements;
        if (whole > 0) Engine::store(shared, map, out, d, row, column);
        else if constexpr (Engine::adds_first) Engine::add(out, d, row, column);
        store_ends(out, d, row, column, whole);
    }

    template <int count> __device__ __forceinline__ static void store_ends(const OutMatrix<Out> &out, const float (&d)[count], int row, int column, int whole) {
        int lane = lane_index(), c = column_at(column, 2 * (lane % 4)), from = columns_left(c, whole), until = columns_left(c, out.columns);
        if (until <= 0 || from >= 2 * count) return;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = row + lane / 4 + 8 * h;
            if (r >= out.rows) continue;
            Out *to = const_cast<Out *>(out.data) + r * out.stride + c;
#pragma unroll
            for (int i = 0; i < count; i += 4) {
#pragma unroll
                for (int k = 0; k < 2; k++)
                    if (2 * i + k >= from && 2 * i + k < until) put(d[i + 2 * h + k], to + 2 * i + k);
            }
        }
    }

    __device__ __forceinline__ static void put(float value, Out *to) {
        if constexpr (Engine::engine_adds) value += to_float(*to);
        store_rounded(value, to);
    }
};
