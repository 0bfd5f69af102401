// From accumulators to a matrix in memory through the copy engine: a warp lays 16 rows of 128 bytes at a time into one of its two
// buffers, in the 128-byte swizzle, and the engine writes them (or, fp32, adds them) while the next are laid. What lies outside the matrix is
// cut off. What is added to 16-bit elements is added here, before the one rounding.
// Config: out_element, fragment_columns, consumer_groups, adds
template <class Out> struct OutMatrix {
    const Out *data;
    i64 stride;
    int rows, columns;
};

template <class Config> struct TileStore {
    using Out = typename Config::out_element;
    static constexpr int box_columns = FLP_OUT_BOX_BYTES / sizeof(Out), box_bytes = FLP_OUT_BOX_ROWS * FLP_OUT_BOX_BYTES;
    static constexpr int boxes = Config::fragment_columns / box_columns;
    static constexpr bool engine_adds = Config::adds && sizeof(Out) == 4, adds_first = Config::adds && sizeof(Out) == 2;

    struct alignas(1024) Shared {
        u8 box[Config::consumer_groups * 4][2][box_bytes];
    };

    // row, column: the corner of the warp's 16 rows in the matrix; old: the matrix, read only where adds_first.
    template <int count>
    __device__ __forceinline__ static void store(Shared &shared, const TensorMap &map, const OutMatrix<Out> &old, float (&d)[count], int row, int column) {
        static_assert(count == Config::fragment_columns / 2, "two rows of two columns of eight");
        if constexpr (adds_first) add(old, d, row, column);
        store_values(shared, map, row, column, [&](int i) { return d[i]; });
    }

    struct InPlace {
        __device__ __forceinline__ void operator()(int &, int &) const {}
    };

    // value(i): what takes accumulator i's place, asked for once each and in their order. place(row, column): moves a box's corner to where it lies.
    // stores: else the values are asked for, and that is all.
    template <class Value, class Place = InPlace> __device__ __forceinline__ static void store_values(Shared &shared, const TensorMap &map, int row, int column,
                                                                                                      Value value, Place place = Place(), bool stores = true) {
        u32 buffer = shared_address(shared.box[warp_index()]);
#pragma unroll
        for (int box = 0; box < boxes; box++) {
            u32 to = buffer + (box % 2) * box_bytes;
            if (stores && lane_index() == 0) {
                // The engine has read what this buffer held: of an odd number the first is the one that was filled last.
                if (box == 0 && boxes % 2 == 1) bulk_wait_read<0>();
                else bulk_wait_read<1>();
            }
            __syncwarp();
            lay(to, value, box, stores);
            async_proxy_fence();
            __syncwarp();
            if (stores && lane_index() == 0) {
                int at_row = row, at_column = column + box * box_columns;
                place(at_row, at_column);
                if constexpr (engine_adds) tma_add(&map, to, at_column, at_row);
                else tma_store(&map, to, at_column, at_row);
                bulk_commit();
            }
        }
    }

    template <int count> __device__ __forceinline__ static void add(const OutMatrix<Out> &old, float (&d)[count], int row, int column) {
        int lane = lane_index(), c = column_at(column, 2 * (lane % 4)), left = columns_left(c, old.columns);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = row + lane / 4 + 8 * h;
            if (r >= old.rows) continue;
            const Out *from = old.data + r * old.stride + c;
#pragma unroll
            for (int i = 0; i < count; i += 4) {
                if (2 * i < left) d[i + 2 * h] += to_float(from[2 * i]);
                if (2 * i + 1 < left) d[i + 2 * h + 1] += to_float(from[2 * i + 1]);
            }
        }
    }

    // A fragment (row_statistics.cuh) of 16 rows and box_columns columns, from accumulator 4 (box_columns / 8) box on.
    template <class Value> __device__ __forceinline__ static void lay(u32 to, Value value, int box, bool stores) {
        if constexpr (sizeof(Out) == 4) lay_pairs(to, value, box, stores);
        else lay_matrices(to, value, box, stores);
    }

    template <class Value> __device__ __forceinline__ static void lay_pairs(u32 to, Value value, int box, bool stores) {
        int lane = lane_index(), line = lane / 4, pair = lane % 4;
#pragma unroll
        for (int j = 0; j < box_columns / 8; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int i = (box * (box_columns / 8) + j) * 4 + 2 * h, byte = (8 * j + 2 * pair) * 4;
                float first = value(i), second = value(i + 1);
                if (stores) store_shared_pair(to + (line + 8 * h) * 128 + (((byte / 16) ^ line) * 16) + byte % 16, first, second);
            }
        }
    }

    // Sixteen columns at a time: two rows of two 8 x 8 matrices. This lane's row of them is lane % 8 of matrix lane / 8.
    template <class Value> __device__ __forceinline__ static void lay_matrices(u32 to, Value value, int box, bool stores) {
        int lane = lane_index(), line = lane % 8, h = lane / 8 % 2, side = lane / 16;
        u32 row = to + (line + 8 * h) * 128;
#pragma unroll
        for (int j = 0; j < box_columns / 8; j += 2) {
            u32 d[4];
#pragma unroll
            for (int part = 0; part < 4; part++) {
                int i = (box * (box_columns / 8) + j + part / 2) * 4 + 2 * (part % 2);
                float first = value(i), second = value(i + 1);
                d[part] = round_pair<Out>(first, second);
            }
            if (stores) store_shared_matrices(row + ((j + side) ^ line) * 16, d);
        }
    }

    // Before the block ends, its shared memory must have been read and its writes be done.
    __device__ __forceinline__ static void finish() {
        if (lane_index() == 0) bulk_wait<0>();
    }
};

template <class Config> struct ProductShared {
    Stages<Config> stages;
    typename TileStore<Config>::Shared out;
};
