// Loads of what is read once: they leave no copy in the L1 cache. PTX ISA, "ld.global.nc", "L1::no_allocate".
// Config: none
struct alignas(16) Vector {
    u32 words[4];
};

// from: a multiple of 16 bytes, in memory that nobody writes to during the kernel.
__device__ __forceinline__ Vector load_once(const void *from) {
    Vector vector;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(vector.words[0]), "=r"(vector.words[1]), "=r"(vector.words[2]), "=r"(vector.words[3])
        : "l"(from));
    return vector;
}
