// Loads and stores of four neighbouring floats in a thread's local memory: PTX ISA, "ld", "st", "local". For scalar accesses the compiler would first have to
// find out which ones are adjacent.
// Config: none

// to, from: in an array in local memory, at a multiple of 16 bytes.
__device__ __forceinline__ void store_local(float *to, float x, float y, float z, float w) {
    asm volatile("st.local.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_local(to)), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

__device__ __forceinline__ void load_local(const float *from, float &x, float &y, float &z, float &w) {
    asm volatile("ld.local.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "l"(__cvta_generic_to_local(from)) : "memory");
}
