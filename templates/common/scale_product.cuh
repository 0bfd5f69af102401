// The last touch to a product before it is stored.
// Config: none

// A sum of no terms is 0, and no instruction has written that.
template <int count> __device__ __forceinline__ void scale_product(float (&d)[count], const float *factor, int steps) {
    float by = factor ? *factor : 1;
    if (by == 1 && steps > 0) return;
#pragma unroll
    for (int i = 0; i < count; i++) d[i] = steps > 0 ? d[i] * by : 0;
}
