// Loads of data that is read only once, which leave no copy in the L1 cache: PTX ISA, "ld.global.nc", "L1::no_allocate".
// Config: none
struct alignas(16) Vector {
    u32 words[4];
};

// from: 16-byte aligned, in memory that nothing writes to during the kernel.
__device__ __forceinline__ Vector load_once(const void *from) {
    Vector vector;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(vector.words[0]), "=r"(vector.words[1]), "=r"(vector.words[2]), "=r"(vector.words[3])
        : "l"(from));
    return vector;
}
