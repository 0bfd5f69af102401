// One stage's product by fp32 multiply-add instead of tensor cores, with the accumulators in the same threads and registers as those of mma.sync.
// Config: element (float), warp_rows, and those of shared_tile
template <class Config> struct StageProduct {
    using TileA = typename Operands<Config>::TileA;
    using TileB = typename Operands<Config>::TileB;
    static_assert(sizeof(typename Config::element) == 4, "16-bit products are exact on the tensor cores");
    static constexpr int row_blocks = Config::warp_rows / 16;

    // The tile's element at row (or column) `outer` and step k of K. swaps: the tile's lines in shared memory are steps of K.
    template <class Tile, bool swaps> __device__ __forceinline__ static float at(u32 tile, int outer, int k) {
        int line = swaps ? k : outer, element = swaps ? outer : k;
        return __uint_as_float(load_shared_word(tile + Tile::place(line, element / 4) + (element % 4) * 4));
    }

    template <int count> __device__ __forceinline__ static void multiply(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        int lane = lane_index();
#pragma unroll 2
        for (int k = 0; k < Config::block_inner; k++) {
            float a[row_blocks][2];
#pragma unroll
            for (int i = 0; i < row_blocks; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) a[i][h] = at<TileA, Config::a_transposed>(stage, row + 16 * i + 8 * h + lane / 4, k);
#pragma unroll
            for (int j = 0; j < count / 4; j++) {
                float b[2];
#pragma unroll
                for (int c = 0; c < 2; c++) b[c] = at<TileB, Config::b_transposed>(stage + TileA::bytes, column + 8 * j + 2 * (lane % 4) + c, k);
#pragma unroll
                for (int i = 0; i < row_blocks; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) d[i][4 * j + e] = fmaf(a[i][e / 2], b[e % 2], d[i][4 * j + e]);
            }
        }
    }
};
