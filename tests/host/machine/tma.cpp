// The copy engine towards shared memory: boxes that arrive piece by piece and complete on mbarriers. PTX ISA, "cp.async.bulk.tensor".
#include <cstring>

#include "host/machine/access.hpp"
#include "host/machine/async_write.hpp"
#include "host/machine/dependent_launch.hpp"
#include "host/machine/global_memory.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/mbarrier.hpp"
#include "host/machine/report.hpp"
#include "host/machine/tensor_map.hpp"

namespace host {

struct Copy {
    flp_host_tensor tensor;
    uint32_t to, barrier;
    int64_t column, row;
    std::vector<Block *> blocks;
    const Thread *by;
    unsigned next_row;

    uint32_t row_bytes() const { return tensor.box_columns * (uint32_t)tensor.element_bytes; }
    void mark();
    void fetch_row(unsigned r, unsigned char *bytes) const;
    void place_row(Block &block, unsigned r, const unsigned char *bytes) const;
    bool advance();
};

static const char *engine_name = "the copy engine's write";

// What its thread has waited for by now is what orders the copy, not what that waits for before the engine gets to it.
void Copy::mark() {
    const bool waits_later = by->clock.launches + 1 < launch_order.number();
    std::vector<unsigned char> bytes(waits_later ? row_bytes() : 0);

    for (unsigned r = 0; waits_later && r < tensor.box_rows; r++) fetch_row(r, bytes.data());
    for (Block *block : blocks) begin_async_write(*by, *block, to, row_bytes() * tensor.box_rows, barrier, engine_name, true);
}

// Zeros where the box reaches outside the tensor.
void Copy::fetch_row(unsigned r, unsigned char *bytes) const {
    const int64_t y = row + r;
    const int64_t first = column < 0 ? -column : 0, last = (int64_t)tensor.columns - column;
    const int64_t end = last < tensor.box_columns ? last : tensor.box_columns;

    memset(bytes, 0, row_bytes());
    if (y < 0 || y >= (int64_t)tensor.rows || first >= end) return;
    const unsigned char *from = (const unsigned char *)tensor.address + y * (int64_t)tensor.row_bytes + (column + first) * tensor.element_bytes;
    const size_t count = (size_t)((end - first) * tensor.element_bytes);
    global_memory.read(*by, from, count);
    memcpy(bytes + first * tensor.element_bytes, from, count);
}

void Copy::place_row(Block &block, unsigned r, const unsigned char *bytes) const {
    const Epoch arrival = async_arrival(*by, block, barrier);

    for (uint32_t c = 0; c < row_bytes(); c += 16) {
        const uint32_t at = swizzled(to + r * row_bytes() + c, tensor.swizzle);
        for (uint32_t i = 0; i < 16; i += 4) {
            place_async_word(block, at + i, bytes + c + i, arrival);
            Word &word = block.shared.word(at + i);
            word.swizzle = (uint8_t)tensor.swizzle;
            word.has_place = true;
            word.column = (int32_t)(column + (c + i) / (uint32_t)tensor.element_bytes);
            word.row = (int32_t)(row + r);
        }
    }
}

// Some rows at a time, each lot in all blocks.
bool Copy::advance() {
    const unsigned count = 1 + machine.random(tensor.box_rows - next_row);
    std::vector<unsigned char> bytes(row_bytes());

    for (unsigned r = next_row; r < next_row + count; r++) {
        fetch_row(r, bytes.data());
        for (Block *block : blocks) {
            check_range(*by, *block, to, row_bytes() * tensor.box_rows, engine_name);
            place_row(*block, r, bytes.data());
        }
    }
    next_row += count;
    for (Block *block : blocks) mbarrier_complete_bytes(*by, *block, barrier, (int64_t)count * row_bytes());
    return next_row == tensor.box_rows;
}

} // namespace host

using namespace host;

// blocks: a bit for each of the cluster; 0: this block's, without multicast.
FLP_HOST_API void flp_host_tma_load(uint32_t to, const void *map, int column, int row, uint32_t barrier, uint32_t blocks) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    Copy copy;

    copy.tensor = read_tensor_map(map);
    if (to % 128 != 0) machine.fail(format("TMA: destination %u, wanted a multiple of 128", to));
    if (barrier % 8 != 0) machine.fail(format("TMA: mbarrier address %u, wanted a multiple of 8", barrier));
    if (blocks >> machine.blocks.size()) machine.fail(format("TMA: multicast to blocks %#x of a cluster of %zu", blocks, machine.blocks.size()));
    copy.to = to;
    copy.barrier = barrier;
    copy.column = column;
    copy.row = row;
    copy.by = &self;
    copy.next_row = 0;
    for (const auto &block : machine.blocks)
        if (blocks ? blocks >> block->rank & 1 : block.get() == self.block) copy.blocks.push_back(block.get());
    copy.mark();
    machine.start_job([copy]() mutable { return copy.advance(); });
}
