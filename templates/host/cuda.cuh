// What CUDA C++ itself provides, in plain C++ for the host machine (the GPU simulator in tests/host/): qualifiers, built-in variables, vector types,
// intrinsics.
//
// The files of this folder are twins: host implementations of the instruction wrappers of the same name. They call functions of the machine (flp_host_*),
// each declared in the file that uses it and defined in the program that loads the kernel. KEEP IN STEP: the host machine's functions (tests/host/machine/).
// Config: none
#define __host__
#define __device__
#define __forceinline__ inline
// Twins are inlined even without optimisation, so that the machine's reports name their callers.
#define __twin__ inline __attribute__((always_inline))
#define __shared__
#define __align__(bytes)
// `extern __shared__ u8 dynamic_shared[]` becomes the declaration of a function that returns the block's array, and each use a call of it.
#define dynamic_shared (*flp_host_dynamic_shared())
extern "C" unsigned char (*flp_host_dynamic_shared())[];

struct dim3 {
    unsigned x, y, z;
};
extern "C" dim3 flp_host_thread_index() __attribute__((const));
extern "C" dim3 flp_host_block_index() __attribute__((const));
extern "C" dim3 flp_host_block_dimensions() __attribute__((const));
extern "C" dim3 flp_host_grid_dimensions() __attribute__((const));
#define threadIdx flp_host_thread_index()
#define blockIdx flp_host_block_index()
#define blockDim flp_host_block_dimensions()
#define gridDim flp_host_grid_dimensions()

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
// The element types of matrix operands, as the machine numbers them.
enum { host_bf16, host_f16, host_tf32 };

// Inlined even without optimisation: the compiler does not report the store of a call's result to the machine.
__attribute__((always_inline)) inline float2 make_float2(float x, float y) { return {x, y}; }
__attribute__((always_inline)) inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
__attribute__((always_inline)) inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
inline float fminf(float x, float y) { return __builtin_fminf(x, y); }
inline float fabsf(float x) { return __builtin_fabsf(x); }
inline float rintf(float x) { return __builtin_rintf(x); }
inline float log2f(float x) { return __builtin_log2f(x); }
inline float log1pf(float x) { return __builtin_log1pf(x); }
inline float expm1f(float x) { return __builtin_expm1f(x); }
inline float expf(float x) { return __builtin_expf(x); }
inline float logf(float x) { return __builtin_logf(x); }
inline float exp2f(float x) { return __builtin_exp2f(x); }
inline float copysignf(float x, float y) { return __builtin_copysignf(x, y); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }

extern "C" unsigned flp_host_shared_address(const void *pointer);
inline unsigned long long __cvta_generic_to_shared(const void *pointer) { return flp_host_shared_address(pointer); }
extern "C" void flp_host_barrier(int number, int threads);
inline void __syncthreads() { flp_host_barrier(0, 0); }
extern "C" void flp_host_warp_barrier(unsigned mask);
inline void __syncwarp(unsigned mask = 0xffffffffu) { flp_host_warp_barrier(mask); }

extern "C" unsigned flp_host_shuffle(unsigned mask, unsigned value, int source);
// Shuffles a value of any number of 32-bit words.
template <class T> inline T shuffle_from(unsigned mask, T value, int source) {
    static_assert(sizeof(T) % 4 == 0, "whole registers");
    struct Words {
        unsigned word[sizeof(T) / 4];
    } words = __builtin_bit_cast(Words, value);
    for (unsigned &word : words.word) word = flp_host_shuffle(mask, word, source);
    return __builtin_bit_cast(T, words);
}
template <class T> inline T __shfl_sync(unsigned mask, T value, int lane) { return shuffle_from(mask, value, lane & 31); }
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
    return shuffle_from(mask, value, (threadIdx.x ^ (unsigned)lane_mask) & 31);
}
extern "C" unsigned flp_host_ballot(unsigned mask, bool condition);
inline unsigned __ballot_sync(unsigned mask, int condition) { return flp_host_ballot(mask, condition != 0); }
inline int __any_sync(unsigned mask, int condition) { return flp_host_ballot(mask, condition != 0) != 0; }

extern "C" void flp_host_atomic(const void *at, unsigned long bytes);
// The machine switches threads only within its own functions, so everything after the call happens in one step.
template <class T, class Change> __attribute__((no_sanitize("thread"))) inline T change_atomically(T *at, Change change) {
    flp_host_atomic(at, sizeof(T));
    T old = *at;
    *at = change(old);
    return old;
}
template <class T> inline T atomicAdd(T *at, T value) {
    return change_atomically(at, [=](T old) { return old + value; });
}
template <class T> inline T atomicMin(T *at, T value) {
    return change_atomically(at, [=](T old) { return min(old, value); });
}
template <class T> inline T atomicOr(T *at, T value) {
    return change_atomically(at, [=](T old) { return old | value; });
}
template <class T> inline T atomicExch(T *at, T value) {
    return change_atomically(at, [=](T) { return value; });
}
