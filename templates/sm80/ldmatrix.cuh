// Shared memory to matrix fragments: PTX ISA, "ldmatrix".
// Config: none

// Loads four 8 x 8 matrices of 16-bit elements (or 8 x 4 of 32-bit ones): lane l passes the address of row l % 8 of matrix l / 8, and receives from each
// matrix the 32 bits at row l / 4, position l % 4.
__device__ __forceinline__ void ldmatrix(u32 (&d)[4], u32 row_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(row_address)
                 : "memory");
}
// Each matrix transposed: 16-bit elements only.
__device__ __forceinline__ void ldmatrix_transposed(u32 (&d)[4], u32 row_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(row_address)
                 : "memory");
}
__device__ __forceinline__ u32 load_shared_word(u32 address) {
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}
__device__ __forceinline__ void store_shared_vector(u32 address, const u32 (&words)[4]) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}
