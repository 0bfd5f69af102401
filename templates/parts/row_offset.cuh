// A row's offset k in base 2: logits far from 0, and temperatures far from 1, and what an entropy's moment becomes when the offset changes.
//
// From an offset of 2^23 on, the fused multiply-add z scale - k would keep bits of the product above the point that k, rounded, does not have: such
// a row's z2 are rounded first, like its offset was.
// Config: none
constexpr float large_offset = 8388608.0f; // 2^23: from here on a float has no bits behind the point

// A row's offset k; infinite ones are none.
__device__ __forceinline__ bool is_large(float k) { return fabsf(k) >= large_offset && fabsf(k) < infinity; }

// The moment sum x 2^x, x = z2 - k, of terms whose offset rises by -change >= 0: sum (x + change) 2^(x + change). A change so large that the terms
// vanish must not overflow.
__device__ __forceinline__ float move_moment(float moment, float sum, float change) {
    return exp2_approximate(change) * fmaf(sum, fmaxf(change, -300.0f), moment);
}
