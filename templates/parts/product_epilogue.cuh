// What every product's epilogue has: what the targets contribute, and the last touch before it is stored.
// Config: none
template <class Config> struct TargetContribution; // target_contribution.cuh, emitted where there are any

// A sum of no terms is 0, and no instruction has written that.
template <int count> __device__ __forceinline__ void scale_product(float (&d)[count], const float *factor, int steps) {
    float by = factor ? *factor : 1;
    if (by == 1 && steps > 0) return;
#pragma unroll
    for (int i = 0; i < count; i++) d[i] = steps > 0 ? d[i] * by : 0;
}

// The rows of a fragment (row_statistics.cuh) by their own factors. row: the first of the warp's 16.
template <int count> __device__ __forceinline__ void scale_rows(float (&d)[count], const float *factors, int row, int rows) {
    if (!factors) return;
    float by[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int r = row + lane_index_reread() / 4 + 8 * h;
        by[h] = r < rows ? factors[r] : 0;
    }
#pragma unroll
    for (int i = 0; i < count; i++) d[i] *= by[(i >> 1) & 1];
}
