// A copy of a thread's accumulators in local memory, for work that few tiles need. There a loop over them need not be unrolled, and one of them can be
// indexed. Over registers, both would take a copy of the code for each accumulator, and such copies are most of a kernel's compile time.
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

    // Calls each(value, j, column) for each accumulator: j is its index among the four of its eight columns, so that it belongs to row j / 2 of the fragment
    // (row_statistics.cuh); column: relative to the thread's first one.
    template <class Each> __device__ __forceinline__ void visit(Each each) {
#pragma unroll 1
        for (int i = 0; i < count; i += 4) {
#pragma unroll
            for (int j = 0; j < 4; j++) each(value[i + j], j, 2 * i + j % 2);
        }
    }

    // The index of a row's accumulator at this distance from the thread's first column; -1: another thread has it, or none.
    __device__ __forceinline__ static int place_of(int row, int distance) {
        return (unsigned)distance < 2 * count && distance % 8 < 2 ? distance / 8 * 4 + 2 * row + distance % 8 : -1;
    }
};
