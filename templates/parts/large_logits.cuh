// Logits far from 0, and temperatures far from 1: what all that multiplies logits by log2(e) / temperature has in common.
//
// From an offset of 2^23 on, the fused multiply-add z scale - k would keep bits of the product above the point that k, rounded, does not have: such
// a row's z2 are rounded first, like its offset was.
// Config: none
constexpr float large_offset = 8388608.0f; // 2^23: from here on a float has no bits behind the point

// A row's offset k; infinite ones are none.
__device__ __forceinline__ bool is_large(float k) { return fabsf(k) >= large_offset && fabsf(k) < infinity; }
