// Stores accumulators to a matrix in memory by TMA, each consumer warp for itself.
//
// A warp has two buffers of 16 rows of 128 bytes, a TMA box, in shared memory. It writes one box of its fragment to a buffer, in the 128-byte swizzle, while
// TMA writes the box in the other buffer to memory (or, with Config::adds and fp32, adds it to memory). TMA cuts off what lies outside the matrix. With
// Config::adds and 16-bit elements, the warp itself reads the old elements and adds them in fp32, so that the sum is rounded once.
// Config: out_element, fragment_columns, consumer_groups, adds

// The matrix in memory, as far as its old elements are read.
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

    // row, column: the first row and column of the warp's fragment in the matrix; old: the matrix, read only where adds_first.
    template <int count>
    __device__ __forceinline__ static void store(Shared &shared, const TensorMap &map, const OutMatrix<Out> &old, float (&d)[count], int row, int column) {
        static_assert(count == Config::fragment_columns / 2, "two rows of two columns of eight");
        if constexpr (adds_first) add(old, d, row, column);
        store_values(shared, map, row, column, [&](int i) { return d[i]; });
    }

    struct InPlace {
        __device__ __forceinline__ void operator()(int &, int &) const {}
    };

    // Stores value(i) in the place of accumulator i; value is called once for each i, in order. place(row, column): moves a box's corner to where it is
    // stored. Without `stores`, value is called all the same, but nothing is stored.
    template <class Value, class Place = InPlace> __device__ __forceinline__ static void store_values(Shared &shared, const TensorMap &map, int row, int column,
                                                                                                      Value value, Place place = Place(), bool stores = true) {
        u32 buffer = shared_address(shared.box[warp_index()]);
#pragma unroll
        for (int box = 0; box < boxes; box++) {
            u32 to = buffer + (box % 2) * box_bytes;
            if (stores && lane_index() == 0) {
                // Waits until TMA has read what this buffer held. With an odd number of boxes, the first box goes to the buffer that was filled last.
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

    // Adds the old elements to the accumulators.
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

    // Writes a box to the buffer at `to`: box_columns columns of the fragment (row_statistics.cuh), from accumulator 4 (box_columns / 8) box on.
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

    // Sixteen columns at a time, as 2 x 2 matrices of 8 x 8 elements (stmatrix). This lane passes the address of row lane % 8 of matrix lane / 8.
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

    // Called before the block ends: waits until TMA has completed the warp's stores, and so no longer reads shared memory.
    __device__ __forceinline__ static void finish() {
        if (lane_index() == 0) bulk_wait<0>();
    }
};

template <class Config> struct ProductShared {
    Stages<Config> stages;
    typename TileStore<Config>::Shared out;
};
