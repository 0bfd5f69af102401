// The gradient filter in a product: which steps of its inner size are passed over (kept_blocks.cuh).
// Config: block_rows, block_vocab, cluster
// Of a product's tile: whether a step of its inner size, FLP_KEPT_BLOCK long, has anything that is kept. The blocks of a cluster share what they load,
// so they decide alike.
template <class Config> struct KeptSteps {
    static constexpr int row_blocks = Config::block_rows * Config::cluster / FLP_KEPT_BLOCK;
    static constexpr int column_blocks = Config::block_vocab / FLP_KEPT_BLOCK;
    const u32 *kept;
    int words, along, first; // first: the tile's first block, of rows or of columns

    __device__ __forceinline__ KeptSteps(const MatrixProductParams &params, int row_block, int column_tile)
        : kept(params.kept), words(params.kept_words), along(params.kept_along),
          first(along == FLP_KEPT_COLUMNS_ALONG_COLUMNS ? column_tile * column_blocks : row_block * row_blocks) {}

    __device__ __forceinline__ bool operator()(int step) const {
        if (along == FLP_KEPT_ROWS_ALONG_ROWS) {
            u32 any = 0;
#pragma unroll
            for (int i = 0; i < row_blocks; i++) any |= kept[(i64)(first + i) * words + step / 32];
            return any >> (step % 32) & 1;
        }
        u32 mask = (1u << (along == FLP_KEPT_COLUMNS_ALONG_COLUMNS ? column_blocks : row_blocks)) - 1;
        return (kept[(i64)step * words + first / 32] >> (first % 32) & mask) != 0;
    }
};
