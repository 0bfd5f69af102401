// Loads and stores of four neighbouring floats in a thread's local memory: the twin of parts/local_memory.cuh.
// Config: none
__device__ __twin__ void store_local(float *to, float x, float y, float z, float w) {
    to[0] = x;
    to[1] = y;
    to[2] = z;
    to[3] = w;
}

__device__ __twin__ void load_local(const float *from, float &x, float &y, float &z, float &w) {
    x = from[0];
    y = from[1];
    z = from[2];
    w = from[3];
}
