// Shared memory to matrix fragments: the twin of sm80/ldmatrix.cuh.
// Config: none
extern "C" void flp_host_ldmatrix(u32 *d, u32 row_address, bool transposed);
extern "C" void flp_host_load_shared(u32 address, void *to, int bytes);
extern "C" void flp_host_store_shared(u32 address, const void *from, int bytes);
__device__ __twin__ void ldmatrix(u32 (&d)[4], u32 row_address) { flp_host_ldmatrix(d, row_address, false); }
__device__ __twin__ void ldmatrix_transposed(u32 (&d)[4], u32 row_address) { flp_host_ldmatrix(d, row_address, true); }
__device__ __twin__ u32 load_shared_word(u32 address) {
    u32 word;
    flp_host_load_shared(address, &word, 4);
    return word;
}
__device__ __twin__ void store_shared_vector(u32 address, const u32 (&words)[4]) { flp_host_store_shared(address, words, 16); }
