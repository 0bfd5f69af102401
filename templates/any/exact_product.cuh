// One stage's product by fp32 multiply-add, with the accumulators where mma.sync would leave them.
// Config: element (float), warp_rows, warp_columns, block_hidden, weight_is_hidden_vocab
template <class Config> struct StageProduct {
    using Hidden = typename Operands<Config>::Hidden;
    using Weight = typename Operands<Config>::Weight;
    static_assert(sizeof(typename Config::element) == 4, "16-bit products are exact on the tensor cores");
    static constexpr int row_blocks = Config::warp_rows / 16;

    template <int count>
    __device__ __forceinline__ static void multiply(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        int lane = lane_index();
        auto at = [](u32 address) { return __uint_as_float(load_shared_word(address)); };
#pragma unroll 2
        for (int k = 0; k < Config::block_hidden; k++) {
            float a[row_blocks][2];
#pragma unroll
            for (int i = 0; i < row_blocks; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) a[i][h] = at(stage + Hidden::place(row + 16 * i + 8 * h + lane / 4, k / 4) + (k % 4) * 4);
#pragma unroll
            for (int j = 0; j < count / 4; j++) {
                float b[2];
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    int n = column + 8 * j + 2 * (lane % 4) + c;
                    u32 tile = stage + Hidden::bytes;
                    b[c] = Config::weight_is_hidden_vocab ? at(tile + Weight::place(k, n / 4) + (n % 4) * 4)
                                                          : at(tile + Weight::place(n, k / 4) + (k % 4) * 4);
                }
#pragma unroll
                for (int i = 0; i < row_blocks; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) d[i][4 * j + e] = fmaf(a[i][e / 2], b[e % 2], d[i][4 * j + e]);
            }
        }
    }
};
