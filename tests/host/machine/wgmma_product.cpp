// Operands from shared-memory descriptors, and the product. PTX ISA, "Matrix Descriptor Format", "Strides".
#include "host/machine/wgmma_product.hpp"

#include <cstring>

#include "host/machine/access.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"
#include "host/machine/tensor_map.hpp"

namespace host {

struct Descriptor {
    uint32_t start, leading, stride;
    int swizzle; // 0 none, 1, 2, 3: 32, 64, 128 bytes, as tensor maps count

    explicit Descriptor(uint64_t bits)
        : start((uint32_t)(bits & 0x3fff) << 4), leading((uint32_t)(bits >> 16 & 0x3fff) << 4), stride((uint32_t)(bits >> 32 & 0x3fff) << 4),
          swizzle((int)(-(bits >> 62) & 3)) {}
    uint32_t row_bytes() const { return 16u << swizzle; }
};

// One operand: `rows` along M or N, the instruction's k along K.
struct Operand {
    const Thread &thread;
    const WgmmaGroup &group;
    const char *name;
    Descriptor descriptor;
    WgmmaShape shape;
    int rows;
    bool is_transposed;
    std::vector<uint32_t> visible; // by agent: up to where its writes are known to be visible to all
    bool has_origin = false;
    int32_t origin_row = 0, origin_column = 0;

    uint32_t address(int row, int k) const;
    void check_visible(const Word &word, uint32_t at);
    void check_place(const Word &word, int row, int k);
    std::vector<const unsigned char *> read();
};

// The address of the 16-byte chunk that begins with the element (row, k).
uint32_t Operand::address(int row, int k) const {
    const Descriptor &d = descriptor;
    const uint32_t r = (uint32_t)row, byte = (uint32_t)(k * element_bytes(shape.type)), width = d.row_bytes();

    if (is_transposed) { // rows of 64 elements along M or N, 8 steps of K together
        return swizzled(d.start + r / 64 * d.leading + (uint32_t)k / 8 * d.stride + (uint32_t)k % 8 * width + r % 64 * 2, d.swizzle);
    }
    if (d.swizzle == 0) return d.start + r / 8 * d.stride + byte / 16 * d.leading + r % 8 * 16;
    return swizzled(d.start + r / 8 * d.stride + r % 8 * width + byte, d.swizzle);
}

// Another thread's writes have to have reached every thread of the warpgroup, and the async proxy.
void Operand::check_visible(const Word &word, uint32_t at) {
    const Block &block = *thread.block;
    const bool is_data = word.content == Content::copied || word.content == Content::generic;
    const Thread *blind = nullptr;

    for (int i = 0; i < 128 && !blind; i++) {
        const Thread &one = *block.threads[(size_t)(thread.index / 128 * 128 + i)];
        if (!one.clock.has(word.write) || (word.content == Content::generic && !one.clock.has_fenced(word.write))) blind = &one;
    }
    if (!blind && is_data && word.initialised == 15) return;

    const std::string where = format("%s at %s", name, describe_address(block, at).c_str());
    if (word.content == Content::copying) machine.fail(format("WGMMA: %s, which a copy that has not completed is filling", where.c_str()), &thread);
    if (!is_data || word.initialised != 15) machine.fail(format("WGMMA: %s, which is uninitialised or no data", where.c_str()), &thread);
    if (word.content == Content::copied)
        machine.fail(format("WGMMA: %s, whose copy has completed on an mbarrier that was not waited for", where.c_str()), blind);
    if (!blind->clock.has(word.write))
        machine.fail(format("WGMMA: %s, which %s wrote with no barrier between", where.c_str(), describe_agent(word.write.agent).c_str()), blind);
    machine.fail(format("proxy fence: the tensor cores read %s, which %s wrote with no fence.proxy.async between", where.c_str(),
                        describe_agent(word.write.agent).c_str()),
                 blind);
}

// What the copy engine brought says itself where in the tensor it belongs: rows and steps of K have to follow each other.
void Operand::check_place(const Word &word, int row, int k) {
    const int32_t tensor_row = word.row - (is_transposed ? k : row), tensor_column = word.column - (is_transposed ? row : k);

    if (!word.has_place) return;
    if (word.swizzle != descriptor.swizzle)
        machine.fail(format("WGMMA: the descriptor of %s says swizzle mode %d (0 none, 1, 2, 3: 32, 64, 128 bytes), the tile was copied with %d", name,
                            descriptor.swizzle, word.swizzle),
                     &thread);
    if (!has_origin) {
        has_origin = true;
        origin_row = tensor_row;
        origin_column = tensor_column;
    }
    if (tensor_row != origin_row || tensor_column != origin_column)
        machine.fail(format("WGMMA: the descriptor of %s takes the element (%d, k %d) from row %d, column %d of the tensor, wanted row %d, column %d", name,
                            row, k, word.row, word.column, word.row + origin_row - tensor_row, word.column + origin_column - tensor_column),
                     &thread);
}

std::vector<const unsigned char *> Operand::read() {
    Block &block = *thread.block;
    const Epoch reading = {(uint32_t)group.committed + 1, group.agent};
    const int each = 16 / element_bytes(shape.type);
    const int outer_count = is_transposed ? shape.k : rows, inner_count = is_transposed ? rows : shape.k;
    std::vector<const unsigned char *> chunks;

    chunks.reserve((size_t)(outer_count * inner_count / each));
    for (int outer = 0; outer < outer_count; outer++)
        for (int inner = 0; inner < inner_count; inner += each) {
            const int row = is_transposed ? inner : outer, k = is_transposed ? outer : inner;
            const uint32_t at = address(row, k);
            if (!block.shared.holds(at, 16))
                machine.fail(format("WGMMA: the descriptor of %s reaches offset %d of %u bytes of shared memory", name, (int)(at - SharedMemory::first_address),
                                    block.shared.bytes()),
                             &thread);
            check_place(block.shared.word(at), row, k);
            for (uint32_t i = at; i < at + 16; i += 4) {
                Word &word = block.shared.word(i);
                if (visible[word.write.agent] < word.write.clock || word.initialised != 15 || word.content >= Content::copying) check_visible(word, i);
                visible[word.write.agent] = std::max(visible[word.write.agent], word.write.clock);
                record_read(word, reading, thread.clock);
            }
            chunks.push_back(block.shared.at(at));
        }
    return chunks;
}

static void check_shape(const Thread &thread, const WgmmaInstruction &instruction) {
    const WgmmaShape &shape = instruction.shape;

    if (shape.k * element_bytes(shape.type) != 32) machine.fail(format("WGMMA: k = %d, wanted 32 bytes", shape.k), &thread);
    if (shape.type == Element::tf32 && (shape.transposed_a || shape.transposed_b)) machine.fail("WGMMA: a tf32 operand is K-major", &thread);
    for (int i = 0; i < 2; i++)
        if ((i ? shape.transposed_b : shape.transposed_a) && Descriptor(i ? instruction.b : instruction.a).swizzle != 3)
            machine.fail("WGMMA: an MN-major operand is modelled with the 128-byte swizzle only", &thread);
}

WgmmaProduct wgmma_read_operands(const Thread &thread, const WgmmaGroup &group, const WgmmaInstruction &instruction) {
    const WgmmaShape &shape = instruction.shape;

    const std::vector<uint32_t> nobody(thread.clock.seen.size());

    check_shape(thread, instruction);
    Operand a = {thread, group, "A", Descriptor(instruction.a), shape, 64, shape.transposed_a, nobody};
    Operand b = {thread, group, "B", Descriptor(instruction.b), shape, shape.n, shape.transposed_b, nobody};
    WgmmaProduct product = {shape, {}, {}, instruction.a_words, nullptr, instruction.accumulates};
    if (!instruction.takes_registers) product.a = a.read();
    for (size_t i = 0; i < product.a_words.size(); i += 4) product.a.push_back((const unsigned char *)&product.a_words[i]);
    product.b = b.read();
    return product;
}

// To [k][rows], so that the inner loop of the product runs along N.
template <Element type> static void decode(const std::vector<const unsigned char *> &chunks, const WgmmaShape &shape, int rows, bool transposed, double *to) {
    const int each = 16 / element_bytes(type), inner_count = transposed ? rows : shape.k;

    for (size_t i = 0; i < chunks.size(); i++) {
        const int outer = (int)i * each / inner_count, inner = (int)i * each % inner_count;
        for (int e = 0; e < each; e++) {
            const int row = transposed ? inner + e : outer, k = transposed ? outer : inner + e;
            double &place = to[k * rows + row];
            if (type == Element::tf32) {
                uint32_t bits;
                memcpy(&bits, chunks[i] + 4 * e, 4);
                place = decode_tf32(bits);
            } else {
                uint16_t bits;
                memcpy(&bits, chunks[i] + 2 * e, 2);
                place = type == Element::bf16 ? decode_bf16(bits) : decode_f16(bits);
            }
        }
    }
}

template <Element type> static void multiply(const WgmmaProduct &product) {
    const int n = product.shape.n, k = product.shape.k;
    double a[16 * 64];
    Doubles b[16 * 256 / 8];
    uint64_t rows = 0; // that are not all zero

    decode<type>(product.a, product.shape, 64, product.shape.transposed_a, a);
    decode<type>(product.b, product.shape, n, product.shape.transposed_b, (double *)b);
    for (int i = 0; i < 64 * k; i++) rows |= (uint64_t)(a[i] != 0) << i % 64;
    if (!is_finite(b, k * n / 8)) rows = ~UINT64_C(0);
    for (int column = 0; column < n; column += 8) {
        float *value = &product.accumulators->value[(size_t)column];
        Doubles sum[64] = {};
        for (int row = 0; product.accumulates && row < 64; row++)
            for (int j = 0; j < 8; j++) sum[row][j] = value[row * n + j];
        add_products(sum, rows, a, 1, 64, &b[column / 8], n / 8, k);
        for (int row = 0; row < 64; row++)
            for (int j = 0; j < 8; j++) value[row * n + j] = truncate_to_float(sum[row][j]);
    }
}

void wgmma_multiply(const WgmmaProduct &product) {
    switch (product.shape.type) {
    case Element::bf16:
        return multiply<Element::bf16>(product);
    case Element::f16:
        return multiply<Element::f16>(product);
    case Element::tf32:
        return multiply<Element::tf32>(product);
    }
}

} // namespace host
