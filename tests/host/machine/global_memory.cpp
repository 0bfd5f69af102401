// Checks accesses to device memory: bounds, races between threads, and reads of what the kernel before may still be writing.
#include "host/machine/global_memory.hpp"

#include <sanitizer/asan_interface.h>
#include <mutex>

#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

GlobalMemory global_memory;

void GlobalMemory::add(void *start, size_t bytes, const char *what)
{
    allocations_[(uintptr_t)start] = {bytes, what};
}

void GlobalMemory::remove(void *start)
{
    allocations_.erase((uintptr_t)start);
    last_bytes_ = 0;
}

void GlobalMemory::begin_kernel()
{
    previous_writers_ = std::move(writers_);
    writers_.clear();
}

void GlobalMemory::check_bounds(const Thread &thread, const void *at, size_t bytes, const char *verb)
{
    const uintptr_t address = (uintptr_t)at;

    if (address - last_start_ < last_bytes_ && address + bytes <= last_start_ + last_bytes_) return;
    auto behind = allocations_.upper_bound(address);
    if (behind != allocations_.begin()) {
        auto found = std::prev(behind);
        last_start_ = found->first;
        last_bytes_ = found->second.bytes;
        if (address + bytes <= last_start_ + last_bytes_ && !__asan_region_is_poisoned(const_cast<void *>(at), bytes)) return;
        if (address - last_start_ < last_bytes_ + 4096)
            machine.fail(format("global memory: %s %zu bytes at offset %zu of %s of %zu bytes", verb, bytes, (size_t)(address - last_start_),
                                found->second.what, found->second.bytes),
                         &thread);
    }
    machine.fail(format("global memory: %s %zu bytes at %p, which is no device memory", verb, bytes, at), &thread);
}

static uint8_t mask_of(uintptr_t at, size_t bytes)
{
    return bytes >= 4 ? 15 : (uint8_t)(((1u << bytes) - 1) << at % 4);
}

// Clusters run one after another here, side by side on a GPU: what another one wrote is a race unless an atomic stands between.
void GlobalMemory::check_writer(const Thread &thread, const void *at, size_t bytes, bool is_atomic, const char *verb)
{
    const uintptr_t first = (uintptr_t)at;

    for (uintptr_t word = first / 4; word <= (first + bytes - 1) / 4; word++) {
        if (!thread.previous_kernel_awaited && previous_writers_.count(word))
            machine.fail(format("dependent launch: %s what the kernel before wrote, without griddepcontrol.wait", verb), &thread);
        auto found = writers_.find(word);
        if (found == writers_.end() || (is_atomic && found->second.is_atomic) || !(found->second.mask & mask_of(first, bytes))) continue;
        const Writer &writer = found->second;
        if (writer.cluster == machine.cluster_number ? !thread.clock.has(writer.epoch) : writer.cluster >= thread.clock.clusters)
            machine.fail(format("data race in global memory: %s %zu bytes at %p, which %s wrote with nothing between that orders the two", verb,
                                bytes, at,
                                writer.cluster == machine.cluster_number ? describe_agent(writer.epoch.agent).c_str() : "another cluster"),
                         &thread);
    }
}

void GlobalMemory::record(Epoch epoch, const void *at, size_t bytes, bool is_atomic)
{
    const uintptr_t first = (uintptr_t)at;

    for (uintptr_t word = first / 4; word <= (first + bytes - 1) / 4; word++)
        writers_[word] = {epoch, machine.cluster_number, mask_of(first, bytes), is_atomic};
}

void GlobalMemory::read(const Thread &thread, const void *at, size_t bytes)
{
    check_bounds(thread, at, bytes, "a read of");
    check_writer(thread, at, bytes, false, "a read of");
}

void GlobalMemory::write(const Thread &thread, const void *at, size_t bytes)
{
    check_bounds(thread, at, bytes, "a write of");
    check_writer(thread, at, bytes, false, "a write of");
    record(thread.now(), at, bytes, false);
}

// Atomics order what other clusters did before: the pattern by which the last block to arrive takes over.
void GlobalMemory::atomic(Thread &thread, const void *at, size_t bytes)
{
    check_bounds(thread, at, bytes, "an atomic on");
    check_writer(thread, at, bytes, true, "an atomic on");
    record(thread.now(), at, bytes, true);
    thread.clock.clusters = machine.cluster_number;
}

void GlobalMemory::read_constant(const Thread &thread, const void *at, size_t bytes)
{
    read(thread, at, bytes);
    for (uintptr_t word = (uintptr_t)at / 4; word <= ((uintptr_t)at + bytes - 1) / 4; word++)
        if (writers_.count(word)) machine.fail(format("ld.global.nc: %zu bytes at %p, which this kernel writes", bytes, at), &thread);
}

void GlobalMemory::engine_write(const Thread &thread, const void *at, size_t bytes, Epoch epoch, bool adds)
{
    check_bounds(thread, at, bytes, "the copy engine's write of");
    check_writer(thread, at, bytes, adds, "the copy engine's write of");
    record(epoch, at, bytes, adds);
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
