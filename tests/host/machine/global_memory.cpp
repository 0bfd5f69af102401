// Checks accesses to device memory: bounds, races between threads, and reads of what the kernel before may still be writing.
#include "host/machine/global_memory.hpp"

#include <cstdlib>
#include <mutex>
#include <sanitizer/asan_interface.h>

#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

GlobalMemory global_memory;

GlobalMemory::Allocation::~Allocation()
{
    free(writers);
}

void GlobalMemory::add(void *start, size_t bytes, const char *what)
{
    allocations_[(uintptr_t)start] = std::make_unique<Allocation>((uintptr_t)start, bytes, what);
}

void GlobalMemory::remove(void *start)
{
    allocations_.erase((uintptr_t)start);
    for (Allocation *&recent : recent_) recent = nullptr;
}

void GlobalMemory::begin_kernel()
{
    launch_++;
}

GlobalMemory::Allocation &GlobalMemory::find(const Thread &thread, const void *at, size_t bytes, const char *verb)
{
    const uintptr_t address = (uintptr_t)at;

    for (Allocation *recent : recent_)
        if (recent && recent->holds(address, bytes)) return *recent;
    auto behind = allocations_.upper_bound(address);
    if (behind != allocations_.begin()) {
        Allocation &found = *std::prev(behind)->second;
        if (found.holds(address, bytes) && !__asan_region_is_poisoned(const_cast<void *>(at), bytes))
            return *(recent_[next_recent_++ % 4] = &found);
        if (address - found.start < found.bytes + 4096)
            machine.fail(format("global memory: %s %zu bytes at offset %zu of %s of %zu bytes", verb, bytes, (size_t)(address - found.start),
                                found.what, found.bytes),
                         &thread);
    }
    machine.fail(format("global memory: %s %zu bytes at %p, which is no device memory", verb, bytes, at), &thread);
}

static uint8_t mask_of(uintptr_t at, size_t bytes)
{
    return bytes >= 4 ? 15 : (uint8_t)(((1u << bytes) - 1) << at % 4);
}

// Clusters run one after another here, side by side on a GPU: what another one wrote is a race unless an atomic stands between.
void GlobalMemory::check_writer(const Thread &thread, const Allocation &in, const void *at, size_t bytes, bool is_atomic, const char *verb) const
{
    const uintptr_t first = (uintptr_t)at, base = in.start / 4;

    if (!in.writers) return;
    for (uintptr_t word = first / 4; word <= (first + bytes - 1) / 4; word++) {
        const Writer &writer = in.writers[word - base];
        if (writer.launch + 1 < launch_) continue;
        if (!thread.previous_kernel_awaited && (writer.launch != launch_ || writer.has_predecessor))
            machine.fail(format("dependent launch: %s what the kernel before wrote, without griddepcontrol.wait", verb), &thread);
        if (writer.launch != launch_ || (is_atomic && writer.is_atomic) || !(writer.mask & mask_of(first, bytes))) continue;
        if (writer.cluster == machine.cluster_number ? !thread.clock.has(writer.epoch) : writer.cluster >= thread.clock.clusters)
            machine.fail(format("data race in global memory: %s %zu bytes at %p, which %s wrote with nothing between that orders the two", verb,
                                bytes, at,
                                writer.cluster == machine.cluster_number ? describe_agent(writer.epoch.agent).c_str() : "another cluster"),
                         &thread);
    }
}

void GlobalMemory::record(Epoch epoch, Allocation &in, const void *at, size_t bytes, bool is_atomic)
{
    const uintptr_t first = (uintptr_t)at, base = in.start / 4;

    if (!in.writers) in.writers = (Writer *)calloc(in.words(), sizeof(Writer));
    if (!in.writers) abort();
    for (uintptr_t word = first / 4; word <= (first + bytes - 1) / 4; word++) {
        Writer &writer = in.writers[word - base];
        const bool has_predecessor = writer.launch == launch_ ? writer.has_predecessor : writer.launch + 1 == launch_;
        writer = {epoch, machine.cluster_number, launch_, mask_of(first, bytes), is_atomic, has_predecessor};
    }
}

void GlobalMemory::read(const Thread &thread, const void *at, size_t bytes)
{
    check_writer(thread, find(thread, at, bytes, "a read of"), at, bytes, false, "a read of");
}

void GlobalMemory::write(const Thread &thread, const void *at, size_t bytes)
{
    Allocation &in = find(thread, at, bytes, "a write of");

    check_writer(thread, in, at, bytes, false, "a write of");
    record(thread.now(), in, at, bytes, false);
}

// Atomics order what other clusters did before: the pattern by which the last block to arrive takes over.
void GlobalMemory::atomic(Thread &thread, const void *at, size_t bytes)
{
    Allocation &in = find(thread, at, bytes, "an atomic on");

    check_writer(thread, in, at, bytes, true, "an atomic on");
    record(thread.now(), in, at, bytes, true);
    thread.clock.clusters = machine.cluster_number;
}

void GlobalMemory::read_constant(const Thread &thread, const void *at, size_t bytes)
{
    const Allocation &in = find(thread, at, bytes, "a read of");

    check_writer(thread, in, at, bytes, false, "a read of");
    for (uintptr_t word = (uintptr_t)at / 4; in.writers && word <= ((uintptr_t)at + bytes - 1) / 4; word++)
        if (in.writers[word - in.start / 4].launch == launch_)
            machine.fail(format("ld.global.nc: %zu bytes at %p, which this kernel writes", bytes, at), &thread);
}

void GlobalMemory::engine_write(const Thread &thread, const void *at, size_t bytes, Epoch epoch, bool adds)
{
    Allocation &in = find(thread, at, bytes, "the copy engine's write of");

    check_writer(thread, in, at, bytes, adds, "the copy engine's write of");
    record(epoch, in, at, bytes, adds);
}

} // namespace host

static std::mutex allocation; // plans are made by several threads; no kernel runs then

extern "C" void flp_host_machine_add_memory(void *start, size_t bytes)
{
    std::lock_guard<std::mutex> lock(allocation);
    host::global_memory.add(start, bytes, "an allocation");
}

extern "C" void flp_host_machine_remove_memory(void *start)
{
    std::lock_guard<std::mutex> lock(allocation);
    host::global_memory.remove(start);
}
