// How many there are of what only the device has counted.
// Config: none
__device__ __forceinline__ int counted(const int *count, int most) { return count ? min(*count, most) : most; }
