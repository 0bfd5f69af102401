// The copy engine from shared memory: boxes written, or added, to tensors, in groups of a thread. PTX ISA, "cp.async.bulk".
#include <cstring>

#include "host/machine/access.hpp"
#include "host/machine/global_memory.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"
#include "host/machine/tensor_map.hpp"

namespace host {

struct Store {
    flp_host_tensor tensor;
    uint32_t from;
    int64_t column, row;
    bool adds;
    Thread *by;
    uint64_t group;
    uint32_t launches; // that its thread knew to be complete: what it waits for later does not order the store

    uint32_t row_bytes() const { return tensor.box_columns * (uint32_t)tensor.element_bytes; }
    uint32_t bytes() const { return row_bytes() * tensor.box_rows; }
    void check_source() const;
    void write_chunk(unsigned char *to, const unsigned char *from, size_t count) const;
    void write_row(unsigned r) const;
    bool finish() const;
};

// What the engine reads was written by ordinary stores, which a proxy fence has to have made visible.
void Store::check_source() const {
    Block &block = *by->block;

    check_range(*by, block, from, bytes(), "the copy engine's read");
    read_shared(*by, block, from, bytes(), "the copy engine's read");
    for (uint32_t at = from; at < from + bytes(); at += 4) {
        Word &word = block.shared.word(at);
        if (word.content == Content::generic && !by->clock.has_fenced(word.write))
            machine.fail(format("proxy fence: the copy engine reads %s, which %s wrote with no fence.proxy.async between", describe_address(block, at).c_str(),
                                describe_agent(word.write.agent).c_str()));
        record_read(word, {(uint32_t)group, by->bulk.reads}, by->clock);
    }
    note_visit(block, {(uint32_t)group, by->bulk.reads});
}

void Store::write_chunk(unsigned char *to, const unsigned char *chunk, size_t count) const {
    global_memory.engine_write(*by, to, count, {(uint32_t)group, by->bulk.writes}, launches);
    if (!adds) {
        memcpy(to, chunk, count);
        return;
    }
    for (size_t i = 0; i < count; i += 4) {
        float old, more;
        memcpy(&old, to + i, 4);
        memcpy(&more, chunk + i, 4);
        old += more;
        memcpy(to + i, &old, 4);
    }
}

// What lies outside the tensor is not written, but for the rest of 16 bytes that a row ends within: seen on an H200, where a neighbour's elements were zeroed.
void Store::write_row(unsigned r) const {
    const int64_t y = row + r;
    const int each = 16 / tensor.element_bytes;

    if (y < 0 || y >= (int64_t)tensor.rows) return;
    for (unsigned c = 0; c < tensor.box_columns; c += (unsigned)each) {
        const unsigned char *chunk = by->block->shared.at(swizzled(from + r * row_bytes() + c * (unsigned)tensor.element_bytes, tensor.swizzle));
        for (int i = 0; i < each; i++) {
            const int64_t x = column + c + i;
            if (x < 0 || x >= ((int64_t)tensor.columns + each - 1) / each * each) continue;
            write_chunk((unsigned char *)tensor.address + y * (int64_t)tensor.row_bytes + x * tensor.element_bytes, chunk + i * tensor.element_bytes,
                        (size_t)tensor.element_bytes);
        }
    }
}

static void complete_groups(Thread &thread) {
    BulkThread &bulk = thread.bulk;

    while (bulk.completed < bulk.committed && bulk.pending.front() == 0) {
        bulk.pending.erase(bulk.pending.begin());
        bulk.completed++;
    }
    if (bulk.waits) {
        bulk.waits = false;
        machine.wake(&thread);
    }
}

bool Store::finish() const {
    for (unsigned r = 0; r < tensor.box_rows; r++) write_row(r);
    by->bulk.pending[(size_t)(group - 1 - by->bulk.completed)]--;
    complete_groups(*by);
    return true;
}

static std::string describe_store_wait(const void *object, uint64_t wanted) {
    auto *bulk = (const BulkThread *)object;
    return format("cp.async.bulk.wait_group for its group %llu of %llu", (unsigned long long)wanted, (unsigned long long)bulk->committed);
}

} // namespace host

using namespace host;

FLP_HOST_API void flp_host_tma_store(const void *map, uint32_t from, int column, int row, bool adds) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    BulkThread &bulk = self.bulk;
    Store store = {read_tensor_map(map), from, column, row, adds, &self, bulk.committed + 1, self.clock.launches};

    if (from % 128 != 0) machine.fail(format("TMA: source %u, wanted a multiple of 128", from));
    if (adds && store.tensor.element_bytes != 4) machine.fail("TMA: only fp32 is added");
    if (!bulk.reads) {
        bulk.reads = machine.new_agent();
        bulk.writes = machine.new_agent();
    }
    store.check_source();
    if (bulk.pending.size() == bulk.committed - bulk.completed) bulk.pending.push_back(0);
    bulk.pending.back()++;
    machine.start_job([store] { return store.finish(); });
}

FLP_HOST_API void flp_host_bulk_commit() {
    FLP_HOST_ENTER();
    BulkThread &bulk = machine.current->bulk;

    if (bulk.pending.size() == bulk.committed - bulk.completed) bulk.pending.push_back(0);
    bulk.committed++;
    complete_groups(*machine.current);
}

// reads_only: until the engine has read shared memory; else until it has written as well.
FLP_HOST_API void flp_host_bulk_wait(int pending, bool reads_only) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    BulkThread &bulk = self.bulk;
    const uint64_t until = bulk.committed > (uint64_t)pending ? bulk.committed - (uint64_t)pending : 0;

    while (bulk.completed < until) {
        bulk.waits = true;
        machine.wait({describe_store_wait, &bulk, until});
    }
    if (!bulk.reads) return;
    self.clock.seen[bulk.reads] = std::max(self.clock.seen[bulk.reads], (uint32_t)until);
    if (!reads_only) self.clock.seen[bulk.writes] = std::max(self.clock.seen[bulk.writes], (uint32_t)until);
}
