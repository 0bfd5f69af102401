// tanh in fp32, of which a softcap is made.
// Config: none
// tanh(x) for |x| < 0.6: an odd polynomial (least squares on Chebyshev nodes of that interval), relative error below 1.6e-7. NaN stays NaN.
__device__ __forceinline__ bool has_small_tangent(float x) { return fabsf(x) < 0.6f; }
__device__ __forceinline__ float small_tangent(float x) {
    float s = x * x;
    float p = fmaf(fmaf(fmaf(0.0156079458f, s, -0.0522078414f), s, 0.133130099f), s, -0.333325886f);
    return fmaf(x * s, p, x);
}

// tanh(x) without a branch, relative error below 4e-7: beyond the small ones (1 - e) / (1 + e) with e = exp(-2 |x|), where 1 - e loses at most one bit.
// slope: 1 - tanh(x)^2, from e, since the difference has few bits where the tangent is near 1.
__device__ __forceinline__ float hyperbolic_tangent(float x, float &slope) {
    float e = exp2_approximate(-2.8853900817779268f * fabsf(x)), inverse = reciprocal_approximate(1 + e);
    float large = copysignf((1 - e) * inverse, x);
    slope = 4 * e * inverse * inverse;
    return has_small_tangent(x) ? small_tangent(x) : large;
}
__device__ __forceinline__ float hyperbolic_tangent(float x) {
    float slope;
    return hyperbolic_tangent(x, slope);
}
// The tangents of a warp's numbers. Where all of them are small, as most logits within a softcap are, they take a third of the instructions and no exponential;
// their bits are the same.
template <int count> __device__ __forceinline__ void hyperbolic_tangents(float *x) {
    float largest = 0;
#pragma unroll
    for (int i = 0; i < count; i++) largest = fmaxf(largest, fabsf(x[i]));
    if (warp_any(!has_small_tangent(largest))) {
#pragma unroll
        for (int i = 0; i < count; i++) x[i] = hyperbolic_tangent(x[i]);
    } else {
#pragma unroll
        for (int i = 0; i < count; i++) x[i] = small_tangent(x[i]);
    }
}
