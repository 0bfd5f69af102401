// The arithmetic of matrix products, for the vector unit that the processor has.
#include "host/machine/number.hpp"

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define FLP_VECTOR_CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define FLP_VECTOR_CLONES
#endif

namespace host {

// Products of 16-bit numbers and of tf32 are exact in a double, and the sums go in one order: every clone, fused or not, gives the same bits.
FLP_VECTOR_CLONES void add_products(Doubles *sum, uint64_t rows, const double *a, int row_step, int k_step, const Doubles *b, int b_step, int k) {
    for (; rows; rows &= rows - 1) {
        const int row = __builtin_ctzll(rows);
        Doubles s = sum[row];
        for (int i = 0; i < k; i++) s += a[row * row_step + i * k_step] * b[i * b_step];
        sum[row] = s;
    }
}

bool is_finite(const Doubles *b, int count) {
    Doubles zero = {};
    double sum = 0;

    for (int i = 0; i < count; i++) zero += b[i] * 0.0;
    for (int i = 0; i < 8; i++) sum += zero[i];
    return sum == 0;
}

} // namespace host
