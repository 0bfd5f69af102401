// The state of warpgroup matrix products: the instruction stream of a warpgroup, its accumulators and what its threads may not touch yet.
#ifndef FLP_TESTS_HOST_MACHINE_WGMMA_HPP
#define FLP_TESTS_HOST_MACHINE_WGMMA_HPP
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "host/machine/number.hpp"

namespace host {

struct Thread;

// m64 n k, the element type, and which operands are MN-major.
struct WgmmaShape {
    int n, k;
    Element type;
    bool transposed_a, transposed_b;
};

struct WgmmaInstruction {
    enum Kind { fence, product, commit, wait } kind;
    WgmmaShape shape;
    uint64_t a, b; // descriptors
    bool accumulates;
    bool takes_registers; // A's numbers come from there, and not by a descriptor
    int pending;          // of a wait
    int arrived;
    float *d[128];
    std::vector<uint32_t> a_words; // [64][8], of registers
    bool operator==(const WgmmaInstruction &other) const;
    std::string describe() const;
};

// One set of accumulator registers while products are under way.
struct WgmmaAccumulators {
    float *d[128];
    int n, undelivered = 128;
    std::vector<float> value; // [64][n]
};

struct WgmmaProduct {
    WgmmaShape shape;
    std::vector<const unsigned char *> a, b; // 16-byte chunks, row by row (MN-major: step of K by step)
    std::vector<uint32_t> a_words;           // what a's chunks are of, where it comes from registers
    WgmmaAccumulators *accumulators;
    bool accumulates;
};

struct WgmmaThread {
    uint64_t position = 0;  // in the warpgroup's instruction stream
    uint64_t committed = 0; // groups
    bool is_fenced = false;
    struct Range {
        float *d;
        int count;
        uint64_t group; // the last one that writes them
    };
    std::vector<Range> pending;
    struct Operand { // four registers of A
        const uint32_t *a;
        uint64_t group; // the last one that reads them
    };
    std::vector<Operand> operands; // that products may still read, as far as the program has said
    uint64_t waited = 0;           // groups
    uintptr_t low = 0, bytes = 0;  // what both span: a quick test for every access to the stack
};

struct WgmmaGroup {
    uint16_t agent = 0;
    std::deque<WgmmaInstruction> stream;
    uint64_t first = 0;                    // position of the stream's first entry
    uint64_t committed = 0, completed = 0; // groups
    uint64_t queued = 0, executed = 0;     // products
    std::deque<uint64_t> ends;             // of each group that is not completed: the products up to its end
    std::deque<WgmmaProduct> queue;
    std::vector<std::unique_ptr<WgmmaAccumulators>> accumulators;
    std::vector<Thread *> waiting;
};

} // namespace host
#endif
