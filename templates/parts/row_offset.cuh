// A row's offset k in base 2: large offsets, from logits far from 0 or temperatures far from 1, and how an entropy's moment changes with the offset.
//
// From an offset of 2^23 on, fp32 has no bits after the binary point. There the fused multiply-add z scale - k would keep bits of the product that rounding
// has removed from k. In such a row z2 is therefore rounded to fp32 first, as its offset was, and k is subtracted from the rounded number.
// Config: none
constexpr float large_offset = 8388608.0f; // 2^23: from here on a float has no bits after the binary point

// Whether a row's offset k is large. Infinite offsets, such as the -inf of a row that has none yet, are not.
__device__ __forceinline__ bool is_large(float k) { return fabsf(k) >= large_offset && fabsf(k) < infinity; }

// With x = z2 - k, sum 2^x and moment = the sum of x 2^x: the moment after the offset k has risen by -change >= 0, which is the sum of (x + change) 2^(x +
// change). Must not overflow where the change is so large that the terms vanish.
__device__ __forceinline__ float move_moment(float moment, float sum, float change) {
    return exp2_approximate(change) * fmaf(sum, fmaxf(change, -300.0f), moment);
}
