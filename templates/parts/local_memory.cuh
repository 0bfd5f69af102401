// Four neighbours of a thread's own memory at a time: PTX ISA, "ld", "st", "local". Of single numbers the compiler has to find out which lie beside each other.
// Config: none

// A multiple of 16 bytes, of an array of the thread's.
__device__ __forceinline__ void store_local(float *to, float x, float y, float z, float w) {
    asm volatile("st.local.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_local(to)), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

__device__ __forceinline__ void load_local(const float *from, float &x, float &y, float &z, float &w) {
    asm volatile("ld.local.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "l"(__cvta_generic_to_local(from)) : "memory");
}
