// Thread indices, votes, shuffles and single-instruction arithmetic.
// Config: none
__device__ __forceinline__ int lane_index() { return threadIdx.x % 32; }
// The warp's number in its block, in a uniform register: the compiler then keeps role branches convergent.
__device__ __forceinline__ int warp_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0); }
// Moves a number that is equal in all lanes to a uniform register.
__device__ __forceinline__ int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }
// The thread's index, read again at each call: the compiler then computes what depends on it where it is used, instead of holding it in registers throughout
// a loop.
__device__ __forceinline__ int thread_index_reread() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}
__device__ __forceinline__ int lane_index_reread() {
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
// A number that identifies the launch within its context.
__device__ __forceinline__ u32 launch_number() {
    u64 number;
    asm("mov.u64 %0, %%gridid;" : "=l"(number));
    return (u32)number;
}
__device__ __forceinline__ void block_barrier() { __syncthreads(); }
__device__ __forceinline__ void warp_barrier() { __syncwarp(); }

template <class T> __device__ __forceinline__ T shuffle_xor(T value, int lane_mask) { return __shfl_xor_sync(0xffffffffu, value, lane_mask); }
// The largest of the lanes' numbers, none of which is NaN. As integers, floats have the same order once all bits but the sign are inverted in the negative
// ones.
__device__ __forceinline__ float warp_largest(float x) {
    int bits = __float_as_int(x);
    bits = __reduce_max_sync(0xffffffffu, bits ^ (bits >> 31 & 0x7fffffff));
    return __int_as_float(bits ^ (bits >> 31 & 0x7fffffff));
}
__device__ __forceinline__ int warp_sum(int x) { return __reduce_add_sync(0xffffffffu, x); }
// The value that `lane` has.
template <class T> __device__ __forceinline__ T shuffle(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
__device__ __forceinline__ bool warp_any(bool condition) { return __any_sync(0xffffffffu, condition); }
__device__ __forceinline__ u32 warp_ballot(bool condition) { return __ballot_sync(0xffffffffu, condition); }

// Whether the condition holds in any of the four lanes that share a fragment's rows.
__device__ __forceinline__ bool quad_any(bool condition) { return (__ballot_sync(0xffffffffu, condition) >> (lane_index() & ~3)) & 15u; }

// 2^x: at most 2 ulp off, exact for integers, 0 for -inf and for results below 2^-126.
__device__ __forceinline__ float exp2_approximate(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal_approximate(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// x y, rounded, and never fused with a following addition. For products that are subtracted from one another: if the compiler fused one of two equal products
// and not the other, they would not be the same number.
__device__ __forceinline__ float rounded_product(float x, float y) { return __fmul_rn(x, y); }

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float to_float(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

// A condition that rarely holds: the compiler moves the code that depends on it out of the way.
__device__ __forceinline__ bool rarely(bool condition) { return __builtin_expect(condition, false); }

// A compiler barrier: keeps the compiler from moving later loads above it, where all their results would need registers at once.
__device__ __forceinline__ void keep_order() { asm volatile("" ::: "memory"); }

// Makes the compiler compute the value here, not later where it is used, so that the registers of its operands become free.
__device__ __forceinline__ void pin_value(float &value) { asm volatile("" : "+f"(value)); }

// Hides the word's value from the compiler: what is derived from it is computed again after this, instead of being held in registers.
__device__ __forceinline__ void make_opaque(u32 &word) { asm volatile("" : "+r"(word)); }
