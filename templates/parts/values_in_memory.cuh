// A thread's accumulators in memory, for what few tiles need: there a loop over them is a loop, and one of them has an address. In registers, which have
// neither, both are a copy of the code for each, and such copies are most of what a kernel takes to compile.
// Config: none
template <int count> struct ValuesInMemory {
    alignas(16) float value[count];

    __device__ __forceinline__ void lay_down(const float *z) {
#pragma unroll
        for (int i = 0; i < count; i += 4) store_local(&value[i], z[i], z[i + 1], z[i + 2], z[i + 3]);
    }
    __device__ __forceinline__ void take_up(float *z) const {
#pragma unroll
        for (int i = 0; i < count; i += 4) load_local(&value[i], z[i], z[i + 1], z[i + 2], z[i + 3]);
    }

    // each(value, j, column): of four neighbours the j-th, of the fragment's row j / 2; column: from the thread's first one on (row_statistics.cuh).
    template <class Each> __device__ __forceinline__ void visit(Each each) {
#pragma unroll 1
        for (int i = 0; i < count; i += 4) {
#pragma unroll
            for (int j = 0; j < 4; j++) each(value[i + j], j, 2 * i + j % 2);
        }
    }

    // Where of a row the column at this distance from the thread's first one lies; -1: not among the thread's.
    __device__ __forceinline__ static int place_of(int row, int distance) {
        return (unsigned)distance < 2 * count && distance % 8 < 2 ? distance / 8 * 4 + 2 * row + distance % 8 : -1;
    }
};
