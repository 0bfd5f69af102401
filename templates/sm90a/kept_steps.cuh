// The gradient filter in a matrix product: which steps along the inner size are skipped (kept_blocks.cuh), and the mainloop over the others.
// Config: block_rows, block_columns, cluster

// For a tile of a product: whether a step along the inner size, which is FLP_KEPT_BLOCK long, has any kept block. The blocks of a cluster share what they
// load, so the decision is the same for all of them: it looks at the rows of the whole cluster.
template <class Config> struct KeptSteps {
    static constexpr bool passes_some_over = true;
    static constexpr int begin = 0, a_row = 0, a_step = 0;
    static constexpr int row_blocks = Config::block_rows * Config::cluster / FLP_KEPT_BLOCK;
    static constexpr int column_blocks = Config::block_columns / FLP_KEPT_BLOCK;
    static_assert(32 % row_blocks == 0 && 32 % column_blocks == 0, "a tile's bits lie in one word");
    int count;
    const u32 *kept;
    int words, along, first; // first: index of the tile's first block of rows, or of columns

    __device__ __forceinline__ KeptSteps(int count, const MatrixProductParams &params, const Unit &unit)
        : count(count), kept(params.kept), words(params.kept_words), along(params.kept_along),
          first(along == FLP_KEPT_COLUMNS_ALONG_COLUMNS ? unit.first_tile * column_blocks : unit.row_block * row_blocks) {}

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

// TileProduct::multiply over the kept steps: waits for a step's products before it looks for the next kept step.
template <class Config, class Steps>
__device__ __forceinline__ int multiply_kept(TileProduct<Config> &product, float (&d)[Config::block_columns / 2], int group, const Steps &steps) {
    const auto from = product.first_stage();
    int done = 0;
#pragma unroll 1
    for (int step = 0; step < steps.count; step++) {
        if (!steps(step)) continue;
        product.multiply_step((float(&)[1][Config::block_columns / 2]) d, group, from, done != 0);
        wgmma_wait<0>();
        product.release(product.empty());
        product.ring.advance();
        done++;
    }
    wgmma_finish(d);
    return done;
}
