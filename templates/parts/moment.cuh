// The entropy's moment sum x 2^x, x = z2 - k, when the offset k changes.
// Config: none

// Of terms whose offset rises by -change >= 0: sum (x + change) 2^(x + change). A change so large that the terms vanish must not overflow.
__device__ __forceinline__ float move_moment(float moment, float sum, float change) {
    return exp2_approximate(change) * fmaf(sum, fmaxf(change, -300.0f), moment);
}
