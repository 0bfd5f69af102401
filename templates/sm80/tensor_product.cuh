// One stage's product on the tensor cores, from shared tiles to the warp's accumulators.
// Config: element, warp_rows, warp_columns, and those of shared_tile
template <class Config> struct StageProduct {
    using element = typename Config::element;
    using TileA = typename Operands<Config>::TileA;
    using TileB = typename Operands<Config>::TileB;
    static constexpr int row_blocks = Config::warp_rows / 16, column_pairs = Config::warp_columns / 16;
    static constexpr int step_chunks = 2; // 32 bytes of K: 16 elements of 16 bits, 8 of 32
    static constexpr bool is_f32 = sizeof(element) == 4;

    // d: [row_blocks][4 x warp_columns / 8]; row, column: the warp's corner in the tile.
    template <int count> __device__ __forceinline__ static void multiply(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        if constexpr (is_f32) multiply_split(d, stage, row, column);
        else multiply_plain(d, stage, row, column);
    }

    template <int count> __device__ __forceinline__ static void multiply_plain(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        int lane = lane_index_reread();
#pragma unroll 1 // two steps' fragments at once would not fit beside the accumulators
        for (int chunk = 0; chunk < Operands<Config>::chunks; chunk += step_chunks) {
            u32 a[row_blocks][4];
#pragma unroll
            for (int i = 0; i < row_blocks; i++) load_a(a[i], stage, lane, row + 16 * i, chunk);
#pragma unroll
            for (int j = 0; j < column_pairs; j++) {
                u32 b[4]; // columns 0-7: first and second half of K; columns 8-15: first and second half of K
                load_b(b, stage + TileA::bytes, lane, column + 16 * j, chunk);
#pragma unroll
                for (int i = 0; i < row_blocks; i++) {
                    mma(element(), &d[i][8 * j], a[i], b[0], b[1]);
                    mma(element(), &d[i][8 * j + 4], a[i], b[2], b[3]);
                }
            }
        }
    }

    // fp32 as three tf32 products: a_low b + a b_low + a b. The tensor cores truncate what they accumulate, which over a long inner size would cost fp32 its
    // accuracy. So they sum only a stage's products, small ones first (low x low is below fp32's last bit), and ordinary additions sum the stages.
    template <int count> __device__ __forceinline__ static void multiply_split(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        constexpr int steps = Operands<Config>::chunks / step_chunks;
        int lane = lane_index_reread();
        u32 a[steps][row_blocks][4], a_low[steps][row_blocks][4];
#pragma unroll
        for (int s = 0; s < steps; s++)
#pragma unroll
            for (int i = 0; i < row_blocks; i++) {
                load_a(a[s][i], stage, lane, row + 16 * i, s * step_chunks);
                split(a[s][i], a_low[s][i]);
            }
#pragma unroll
        for (int j = 0; j < column_pairs; j++) {
            float sum[row_blocks][8] = {};
            u32 b[steps][4], b_low[steps][4];
#pragma unroll
            for (int s = 0; s < steps; s++) {
                load_b(b[s], stage + TileA::bytes, lane, column + 16 * j, s * step_chunks);
                split(b[s], b_low[s]);
            }
#pragma unroll
            for (int s = 0; s < steps; s++) multiply_pair(sum, a_low[s], b[s]);
#pragma unroll
            for (int s = 0; s < steps; s++) multiply_pair(sum, a[s], b_low[s]);
#pragma unroll
            for (int s = 0; s < steps; s++) multiply_pair(sum, a[s], b[s]);
#pragma unroll
            for (int i = 0; i < row_blocks; i++)
#pragma unroll
                for (int e = 0; e < 8; e++) d[i][8 * j + e] += sum[i][e];
        }
    }

    __device__ __forceinline__ static void multiply_pair(float (&sum)[row_blocks][8], const u32 (&a)[row_blocks][4], const u32 (&b)[4]) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++) {
            mma_tf32(&sum[i][0], a[i], b[0], b[1]);
            mma_tf32(&sum[i][4], a[i], b[2], b[3]);
        }
    }

    // Loads A's fragment of 16 rows from `row` on. chunk: the first 16-byte chunk along the inner size.
    __device__ __forceinline__ static void load_a(u32 (&a)[4], u32 tile, int lane, int row, int chunk) {
        if constexpr (!Config::a_transposed) {
            ldmatrix(a, tile + TileA::place(row, lane % 16, chunk + lane / 16));
        } else if constexpr (!is_f32) {
            ldmatrix_transposed(a, tile + TileA::place(chunk * 8, lane % 8 + (lane / 16) * 8, row / 8 + (lane / 8) % 2));
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) a[i] = load_across<TileA>(tile, lane, row + (i & 1) * 8, chunk, i >> 1);
        }
    }

    // For fp32 in a tile whose lines are steps of the inner size: the element of this lane's row (or column) and of its step among the four in half `half`.
    template <class Tile> __device__ __forceinline__ static u32 load_across(u32 tile, int lane, int outer, int chunk, int half) {
        int n = outer + lane / 4;
        return load_shared_word(tile + Tile::place(chunk * 4, lane % 4 + half * 4, n / 4) + (n % 4) * 4);
    }

    __device__ __forceinline__ static void split(u32 (&x)[4], u32 (&low)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) split_tf32(x[i], x[i], low[i]);
    }

    __device__ __forceinline__ static void load_b(u32 (&b)[4], u32 tile, int lane, int column, int chunk) {
        if constexpr (!Config::b_transposed) {
            ldmatrix(b, tile + TileB::place(column, lane % 8 + (lane / 16) * 8, chunk + (lane / 8) % 2));
        } else if constexpr (!is_f32) {
            ldmatrix_transposed(b, tile + TileB::place(chunk * 8, lane % 16, column / 8 + lane / 16));
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) b[i] = load_across<TileB>(tile, lane, column + (i >> 1) * 8, chunk, i & 1);
        }
    }
};
