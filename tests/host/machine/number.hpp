// The number formats of tensor operands, as exact doubles, and the tensor cores' rounding.
#ifndef FLP_TESTS_HOST_MACHINE_NUMBER_HPP
#define FLP_TESTS_HOST_MACHINE_NUMBER_HPP
#include <cmath>
#include <cstdint>
#include <cstring>

namespace host {

inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline double decode_bf16(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }

inline double decode_f16(uint16_t bits) {
    // fp32's exponent is biased by 112 more; subnormal numbers come out right as well.
    float size = (bits & 0x7c00) == 0x7c00 ? ((bits & 0x3ff) ? NAN : INFINITY) : float_of_bits((uint32_t)(bits & 0x7fff) << 13) * 0x1p112f;
    return bits >> 15 ? -size : size;
}

// The tensor cores read the upper 19 bits of a tf32 operand.
inline double decode_tf32(uint32_t bits) { return float_of_bits(bits & 0xffffe000u); }

// Accumulation rounds towards zero (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores, 2021).
inline float truncate_to_float(double sum) {
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    bits &= ~((UINT64_C(1) << 29) - 1);
    memcpy(&sum, &bits, sizeof bits);
    return (float)sum;
}

// Eight columns of a product; the compiler splits them where a machine's vectors are shorter.
typedef double Doubles __attribute__((vector_size(64), may_alias));

// sum[row] += a[row * row_step + i * k_step] * b[i * b_step] over the k values of i, in order, for the rows whose bit is set: where b is
// finite a row of zeros, which tiles are full of at small N, adds nothing.
void add_products(Doubles *sum, uint64_t rows, const double *a, int row_step, int k_step, const Doubles *b, int b_step, int k);
bool is_finite(const Doubles *b, int count);

enum class Element { bf16 = 0, f16 = 1, tf32 = 2 };

inline int element_bytes(Element type) { return type == Element::tf32 ? 4 : 2; }

} // namespace host
#endif
