// Thread indices, votes, shuffles and single-instruction arithmetic: the twin of parts/simt.cuh.
// Config: none
__device__ __twin__ int lane_index() { return threadIdx.x % 32; }
__device__ __twin__ int warp_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0); }
__device__ __twin__ int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }
__device__ __twin__ int thread_index_reread() { return threadIdx.x; }
__device__ __twin__ int lane_index_reread() { return threadIdx.x % 32; }
extern "C" unsigned flp_host_launch_number();
__device__ __twin__ u32 launch_number() { return flp_host_launch_number(); }
__device__ __twin__ void block_barrier() { __syncthreads(); }
__device__ __twin__ void warp_barrier() { __syncwarp(); }

template <class T> __device__ __twin__ T shuffle_xor(T value, int lane_mask) { return __shfl_xor_sync(0xffffffffu, value, lane_mask); }
__device__ __twin__ float warp_largest(float x) {
    for (int m = 16; m > 0; m /= 2) x = fmaxf(x, shuffle_xor(x, m));
    return x;
}
__device__ __twin__ int warp_sum(int x) {
    for (int m = 16; m > 0; m /= 2) x += shuffle_xor(x, m);
    return x;
}
// The value that `lane` has.
template <class T> __device__ __twin__ T shuffle(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
__device__ __twin__ bool warp_any(bool condition) { return __any_sync(0xffffffffu, condition); }
__device__ __twin__ u32 warp_ballot(bool condition) { return __ballot_sync(0xffffffffu, condition); }

// Whether the condition holds in any of the four lanes that share a fragment's rows.
__device__ __twin__ bool quad_any(bool condition) { return (__ballot_sync(0xffffffffu, condition) >> (lane_index() & ~3)) & 15u; }

// 2^x: at most 2 ulp off, exact for integers, 0 for -inf and for results below 2^-126.
__device__ __twin__ float exp2_approximate(float x) {
    float y = exp2f(x);
    return y < 0x1p-126f ? 0 : y;
}

__device__ __twin__ float reciprocal_approximate(float x) { return 1 / x; }

// x y, rounded, and never fused with a following addition. For products that are subtracted from one another: if the compiler fused one of two equal products
// and not the other, they would not be the same number.
__device__ __twin__ float rounded_product(float x, float y) {
    volatile float product = x * y;
    return product;
}

__device__ __twin__ float to_float(float x) { return x; }
__device__ __twin__ float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __twin__ float to_float(f16 x) {
    u32 exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    float size = exponent == 31  ? __uint_as_float(0x7f800000u | fraction << 13)
                 : exponent == 0 ? (float)fraction * 0x1p-24f
                                 : __uint_as_float((exponent + 112) << 23 | fraction << 13);
    return x.bits >> 15 ? -size : size;
}

__device__ __twin__ bool rarely(bool condition) { return __builtin_expect(condition, false); }
__device__ __twin__ void keep_order() {}
__device__ __twin__ void pin_value(float &) {}
__device__ __twin__ void make_opaque(u32 &) {}
