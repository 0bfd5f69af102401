// mbarriers: arrivals, bytes, phases. PTX ISA, "mbarrier": a phase completes when no arrival is pending and no byte is outstanding.
#include "host/machine/mbarrier.hpp"

#include "host/machine/access.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

static constexpr int64_t most_bytes = (1 << 20) - 1;

static std::string name_of(const Block &block, uint32_t address) {
    return format("the mbarrier at offset %u of block %d's shared memory", address - SharedMemory::first_address, block.rank);
}

Mbarrier &mbarrier_at(const Thread &thread, Block &block, uint32_t address, bool by_engine) {
    auto found = block.mbarriers.find(address);

    if (found == block.mbarriers.end()) machine.fail("mbarrier: " + name_of(block, address) + " has not been initialised", &thread);
    if (block.live_threads == 0) machine.fail("cluster: " + name_of(block, address) + " is used after its block has ended", &thread);
    Mbarrier &barrier = found->second;
    if (!thread.clock.has(barrier.initialised))
        machine.fail("mbarrier: " + name_of(block, address) + " is used with no barrier between its initialisation and this thread", &thread);
    if (by_engine && !barrier.is_fenced)
        machine.fail("mbarrier: " + name_of(block, address) +
                         " is used by the copy engine or another block, and no fence.mbarrier_init or "
                         "proxy fence followed its initialisation",
                     &thread);
    return barrier;
}

static void complete_if_due(Mbarrier &barrier) {
    if (barrier.pending != 0 || barrier.bytes != 0) return;
    barrier.phases++;
    barrier.pending = barrier.arrivals;
    // Whoever waits for this phase sees the copies that completed in it.
    barrier.gathering.seen[barrier.agent] = barrier.phases;
    barrier.released.join(barrier.gathering);
    machine.wake_all(barrier.waiting);
}

static void add_bytes(const Thread &by, Mbarrier &barrier, int64_t bytes) {
    barrier.bytes += bytes;
    if (barrier.bytes > most_bytes || barrier.bytes < -most_bytes)
        machine.fail(format("mbarrier: a transaction count of %lld bytes, wanted at most %lld", (long long)barrier.bytes, (long long)most_bytes), &by);
}

void mbarrier_complete_bytes(const Thread &by, Block &block, uint32_t address, int64_t bytes, const Clock *released) {
    Mbarrier &barrier = mbarrier_at(by, block, address, true);

    if (released) barrier.gathering.join(*released);
    add_bytes(by, barrier, -bytes);
    complete_if_due(barrier);
}

static void arrive(Thread &self, Block &block, uint32_t address, bool by_engine, int64_t announced) {
    Mbarrier &barrier = mbarrier_at(self, block, address, by_engine);

    add_bytes(self, barrier, announced);
    if (barrier.pending == 0)
        machine.fail(format("mbarrier: one arrival more than the %d of a phase, at %s (phase %u, %lld bytes outstanding)", barrier.arrivals,
                            name_of(block, address).c_str(), barrier.phases, (long long)barrier.bytes));
    barrier.pending--;
    if (&block != self.block) note_visit(block, self.now());
    barrier.gathering.join(self.clock);
    self.step();
    complete_if_due(barrier);
}

static std::string describe_wait(const void *object, uint64_t phase) {
    auto *barrier = (const Mbarrier *)object;
    std::string name = "an mbarrier", bytes;

    for (const auto &block : machine.blocks)
        for (const auto &entry : block->mbarriers)
            if (&entry.second == barrier) name = name_of(*block, entry.first);
    if (barrier->bytes > 0) bytes = format(", and %lld bytes that were announced by expect_tx have not come", (long long)barrier->bytes);
    if (barrier->bytes < 0) bytes = format(", and %lld bytes more have come than expect_tx announced", (long long)-barrier->bytes);
    return format("phase %llu (parity %llu) of %s, which lacks %d of %d arrivals%s", (unsigned long long)phase, (unsigned long long)phase & 1, name.c_str(),
                  barrier->pending, barrier->arrivals, bytes.c_str());
}

static Thread &enter(const void *pc) {
    machine.current->pc = pc;
    return *machine.current;
}

} // namespace host

using namespace host;

FLP_HOST_API void flp_host_mbarrier_init(uint32_t address, int arrivals) {
    Thread &self = enter(__builtin_return_address(0));
    Block &block = *self.block;

    if (address % 8 != 0) machine.fail(format("mbarrier: address %u, wanted a multiple of 8", address));
    if (arrivals < 1 || arrivals > most_bytes) machine.fail(format("mbarrier: %d arrivals, wanted 1 .. 2^20 - 1", arrivals));
    write_shared(self, block, address, 8, "mbarrier.init");
    for (uint32_t at = address; at < address + 8; at += 4) block.shared.word(at).content = Content::mbarrier;
    Mbarrier &barrier = block.mbarriers[address];
    barrier = Mbarrier();
    barrier.agent = machine.new_agent();
    barrier.initialised = self.now();
    barrier.arrivals = barrier.pending = arrivals;
    barrier.gathering.seen.assign(self.clock.seen.size(), 0);
}

FLP_HOST_API void flp_host_mbarrier_init_fence(void) {
    Thread &self = enter(__builtin_return_address(0));

    for (auto &entry : self.block->mbarriers)
        if (self.clock.has(entry.second.initialised)) entry.second.is_fenced = true;
}

FLP_HOST_API void flp_host_proxy_fence(void) {
    Thread &self = enter(__builtin_return_address(0));

    self.clock.fence();
    flp_host_mbarrier_init_fence();
}

FLP_HOST_API void flp_host_mbarrier_arrive(uint32_t address, int announced_bytes) {
    Thread &self = enter(__builtin_return_address(0));

    arrive(self, *self.block, address, false, announced_bytes);
}

FLP_HOST_API void flp_host_mbarrier_arrive_remote(uint32_t address, int block) {
    Thread &self = enter(__builtin_return_address(0));

    if (block < 0 || (size_t)block >= machine.blocks.size()) machine.fail(format("mapa: block %d of a cluster of %zu", block, machine.blocks.size()));
    arrive(self, *machine.blocks[(size_t)block], address, machine.blocks[(size_t)block].get() != self.block, 0);
}

FLP_HOST_API void flp_host_mbarrier_wait(uint32_t address, int parity) {
    Thread &self = enter(__builtin_return_address(0));
    Mbarrier &barrier = mbarrier_at(self, *self.block, address, false);

    while ((barrier.phases & 1) == (uint32_t)parity) {
        barrier.waiting.push_back(&self);
        machine.wait({describe_wait, &barrier, barrier.phases});
    }
    self.clock.join(barrier.released);
}
