// Loads of data that is read only once: the twin of parts/streaming.cuh.
// Config: none
extern "C" void flp_host_load_constant(const void *from, void *to, int bytes);
struct alignas(16) Vector {
    u32 words[4];
};

__device__ __twin__ Vector load_once(const void *from) {
    Vector vector;
    flp_host_load_constant(from, &vector, 16);
    return vector;
}
