// One warpgroup product: its operands by descriptors, and its arithmetic.
#ifndef FLP_TESTS_HOST_MACHINE_WGMMA_PRODUCT_HPP
#define FLP_TESTS_HOST_MACHINE_WGMMA_PRODUCT_HPP
#include <cstddef>

#include "host/machine/wgmma.hpp"

namespace host {

// Where accumulator i of a thread of the warpgroup stands in a [64][n] matrix: PTX's figure for D of wgmma.
inline size_t wgmma_place(int thread, int i, int n) {
    int row = thread / 32 * 16 + thread % 32 / 4 + (i / 2 % 2) * 8, column = i / 4 * 8 + thread % 4 * 2 + i % 2;
    return (size_t)row * (size_t)n + (size_t)column;
}

// Decodes the descriptors, checks that all 128 threads may read what they name, and records that the group reads it. The thread is the
// last of the warpgroup that came.
WgmmaProduct wgmma_read_operands(const Thread &thread, const WgmmaGroup &group, const WgmmaInstruction &instruction);
void wgmma_multiply(const WgmmaProduct &product);

} // namespace host
#endif
