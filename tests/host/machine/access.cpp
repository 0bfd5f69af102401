// Ordinary accesses. Kernels are compiled for the thread sanitizer, whose calls end here: every load and store is seen.
#include "host/machine/access.hpp"

#include "host/machine/global_memory.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

static constexpr size_t red_zone = SharedStorage::red_zone;

void check_range(const Thread &thread, const Block &block, uint32_t address, size_t bytes, const char *what) {
    if (block.live_threads == 0) machine.fail(format("cluster: %s touches shared memory of block %d, which has ended", what, block.rank), &thread);
    if (!block.shared.holds(address, bytes))
        machine.fail(
            format("shared memory: %s of %zu bytes at offset %d of %u bytes", what, bytes, (int)(address - SharedMemory::first_address), block.shared.bytes()),
            &thread);
}

std::string describe_address(const Block &block, uint32_t address) {
    return format("offset %u of block %d's shared memory", address - SharedMemory::first_address, block.rank);
}

static uint8_t mask_of(uint32_t address, size_t bytes, uint32_t word) {
    uint8_t mask = 0;

    for (uint32_t i = 0; i < 4; i++)
        if (word * 4 + i >= address && word * 4 + i < address + bytes) mask |= (uint8_t)(1u << i);
    return mask;
}

void record_read(Word &word, Epoch epoch, const Clock &clock) {
    Epoch *place = &word.reads[epoch.agent % 4];

    for (Epoch &read : word.reads)
        if (read.agent == epoch.agent || read.clock == 0 || clock.has(read)) {
            place = &read;
            if (read.agent == epoch.agent) break;
        }
    *place = epoch;
}

static void check_read(const Thread &thread, const Block &block, const Word &word, uint8_t mask, uint32_t address, const char *what) {
    const std::string at = describe_address(block, address);

    if (word.content == Content::copying) machine.fail(format("TMA: %s at %s, which a copy that has not completed is filling", what, at.c_str()), &thread);
    if (word.content == Content::copying_thread)
        machine.fail(format("cp.async: %s at %s, which a copy that has not been waited for is filling", what, at.c_str()), &thread);
    if (word.content == Content::mbarrier) machine.fail(format("mbarrier: %s at %s, where an mbarrier object lies", what, at.c_str()), &thread);
    if (mask & ~word.initialised) machine.fail(format("uninitialised shared memory: %s at %s", what, at.c_str()), &thread);
    if ((mask & word.write_mask) && !thread.clock.has(word.write)) {
        if (word.content == Content::copied)
            machine.fail(format("TMA: %s at %s, whose copy has completed on an mbarrier that was not waited for", what, at.c_str()), &thread);
        machine.fail(
            format("data race in shared memory: %s at %s, which %s wrote with no barrier between", what, at.c_str(), describe_agent(word.write.agent).c_str()),
            &thread);
    }
}

static bool is_products(uint16_t agent) {
    for (const auto &block : machine.blocks)
        for (const WgmmaGroup &group : block->groups)
            if (group.agent == agent) return true;
    return false;
}

static bool is_copies(uint16_t agent) {
    for (const auto &block : machine.blocks)
        for (const Thread *thread : block->threads)
            if (thread->bulk.reads == agent && agent != 0) return true;
    return false;
}

bool may_overwrite(const Thread &thread, const Word &word, uint8_t mask) {
    if (word.content >= Content::copying || ((word.write_mask & mask) && !thread.clock.has(word.write))) return false;
    for (const Epoch &read : word.reads)
        if (read.clock && !thread.clock.has(read)) return false;
    return true;
}

void refuse_overwrite(const Thread &thread, const Block &block, const Word &word, uint8_t mask, uint32_t address, const char *instruction) {
    const std::string what = format("%s at %s", instruction, describe_address(block, address).c_str());

    if (word.content == Content::copying) machine.fail(format("TMA: %s, which a copy that has not completed is filling", what.c_str()), &thread);
    if (word.content == Content::copying_thread)
        machine.fail(format("cp.async: %s, which a copy that has not been waited for is filling", what.c_str()), &thread);
    if (word.content == Content::mbarrier) machine.fail(format("mbarrier: %s, where an mbarrier object lies", what.c_str()), &thread);
    if ((word.write_mask & mask) && !thread.clock.has(word.write))
        machine.fail(format("data race in shared memory: %s, which %s wrote with no barrier between", what.c_str(), describe_agent(word.write.agent).c_str()),
                     &thread);
    for (const Epoch &read : word.reads)
        if (read.clock && !thread.clock.has(read)) {
            if (is_products(read.agent)) machine.fail(format("WGMMA: %s, which %s still read", what.c_str(), describe_agent(read.agent).c_str()), &thread);
            if (is_copies(read.agent)) machine.fail(format("TMA: %s, which %s still reads", what.c_str(), describe_agent(read.agent).c_str()), &thread);
            machine.fail(format("data race in shared memory: %s, which %s has read with no barrier between", what.c_str(), describe_agent(read.agent).c_str()),
                         &thread);
        }
    __builtin_unreachable();
}

// The words of a range, each with the mask of its bytes. A visitor that is quick where nothing is wrong: reports are made elsewhere.
template <class Visit> static void each_word(Block &block, uint32_t address, size_t bytes, Visit visit) {
    for (uint32_t word = address / 4; word <= (address + bytes - 1) / 4; word++) visit(block.shared.word(word * 4), mask_of(address, bytes, word), word * 4);
}

void read_shared(Thread &thread, Block &block, uint32_t address, size_t bytes, const char *what) {
    check_range(thread, block, address, bytes, what);
    each_word(block, address, bytes, [&](Word &word, uint8_t mask, uint32_t at) {
        bool fine = (word.content == Content::generic || word.content == Content::copied) && !(mask & ~word.initialised) && thread.clock.has(word.write);
        if (!fine) check_read(thread, block, word, mask, at, what);
        record_read(word, thread.now(), thread.clock);
    });
}

void write_shared(Thread &thread, Block &block, uint32_t address, size_t bytes, const char *what) {
    check_range(thread, block, address, bytes, what);
    each_word(block, address, bytes, [&](Word &word, uint8_t mask, uint32_t at) {
        if (!may_overwrite(thread, word, mask)) refuse_overwrite(thread, block, word, mask, at, what);
        for (Epoch &read : word.reads) read = Epoch();
        word.write = thread.now();
        word.write_mask = mask;
        word.initialised |= mask;
        word.content = Content::generic;
    });
}

// An access to the thread's own stack: accumulators that a product may still write are not its to touch, and what it may still read of A not to write.
static void touch_registers(Thread &thread, uintptr_t address, bool writes) {
    for (const WgmmaThread::Operand &operand : thread.wgmma.operands)
        if (writes && address - (uintptr_t)operand.a < 16)
            machine.fail("WGMMA: a register of A is written that nothing has held until behind the wait for its products");
    for (const WgmmaThread::Range &range : thread.wgmma.pending)
        if (address - (uintptr_t)range.d < (uintptr_t)range.count * 4)
            machine.fail(
                format("WGMMA: accumulator %zu is touched before its products were committed and waited for", (size_t)(address - (uintptr_t)range.d) / 4));
}

static void access(void *pointer, size_t bytes, bool writes, const void *pc) {
    Thread *thread = machine.current;
    const uintptr_t address = (uintptr_t)pointer;

    if (!thread) return;
    if (thread->fiber.owns(address)) {
        if (address - thread->wgmma.low < thread->wgmma.bytes) {
            thread->pc = pc;
            touch_registers(*thread, address, writes);
        }
        return;
    }
    thread->pc = pc;
    for (const auto &block : machine.blocks)
        if (address + red_zone - (uintptr_t)block->shared.base() < block->shared.bytes() + 2 * red_zone) {
            (writes ? write_shared : read_shared)(*thread, *block, block->shared.address_of(pointer), bytes, writes ? "a write" : "a read");
            return;
        }
    if (writes) global_memory.write(*thread, pointer, bytes);
    else global_memory.read(*thread, pointer, bytes);
}

} // namespace host

#define FLP_ACCESS(bytes)                                                                                                                                      \
    FLP_HOST_API void __tsan_read##bytes(void *at) { host::access(at, bytes, false, __builtin_return_address(0)); }                                            \
    FLP_HOST_API void __tsan_write##bytes(void *at) { host::access(at, bytes, true, __builtin_return_address(0)); }                                            \
    FLP_HOST_API void __tsan_unaligned_read##bytes(void *at) { host::access(at, bytes, false, __builtin_return_address(0)); }                                  \
    FLP_HOST_API void __tsan_unaligned_write##bytes(void *at) { host::access(at, bytes, true, __builtin_return_address(0)); }
FLP_ACCESS(1)
FLP_ACCESS(2)
FLP_ACCESS(4)
FLP_ACCESS(8)
FLP_ACCESS(16)
FLP_HOST_API void __tsan_read_range(void *at, size_t bytes) { host::access(at, bytes, false, __builtin_return_address(0)); }
FLP_HOST_API void __tsan_write_range(void *at, size_t bytes) { host::access(at, bytes, true, __builtin_return_address(0)); }
FLP_HOST_API void __tsan_func_entry(void *) {}
FLP_HOST_API void __tsan_func_exit(void) {}
FLP_HOST_API void __tsan_init(void) {}
