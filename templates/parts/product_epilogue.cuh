// The epilogue of every matrix product, between the mainloop and the store: scaling, and the targets' contribution.
// Config: none
template <class Config> struct TargetContribution; // target_contribution.cuh, emitted where targets contribute

// Multiplies a fragment (row_statistics.cuh) by params.factor, and each of its rows by that row's params.row_factor: two passes of one loop. row: the first
// of the warp's 16 rows.
template <int count> __device__ __forceinline__ void scale_product(float (&d)[count], const MatrixProductParams &params, int row, int rows) {
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        const float *factors = pass == 0 ? params.factor : params.row_factor;
        if (!factors) continue;
        float by[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = row + lane_index_reread() / 4 + 8 * h;
            by[h] = pass == 0 ? *factors : r < rows ? factors[r] : 0;
        }
        if (by[0] == 1 && by[1] == 1) continue;
#pragma unroll
        for (int i = 0; i < count; i++) d[i] *= by[(i >> 1) & 1];
    }
}
