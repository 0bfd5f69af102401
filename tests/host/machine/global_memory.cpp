// Checks accesses to device memory: bounds, races between threads, and those between launches that may overlap.
#include "host/machine/global_memory.hpp"

#include <cstdlib>
#include <mutex>
#include <sanitizer/asan_interface.h>

#include "host/machine/dependent_launch.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

GlobalMemory global_memory;

GlobalMemory::Allocation::~Allocation() { free(accesses); }

void GlobalMemory::add(void *start, size_t bytes, const char *what) {
    allocations_[(uintptr_t)start] = std::make_unique<Allocation>((uintptr_t)start, bytes, what);
}

void GlobalMemory::remove(void *start) {
    allocations_.erase((uintptr_t)start);
    for (Allocation *&recent : recent_) recent = nullptr;
}

void GlobalMemory::set_parts(void *start, size_t bytes, const flp_host_workspace_part *parts, int count, const char *step) {
    auto behind = allocations_.upper_bound((uintptr_t)start);

    if (behind == allocations_.begin()) return;
    Allocation &in = *std::prev(behind)->second;
    if (!in.holds((uintptr_t)start, bytes)) return;
    in.parts.assign(parts, parts + count);
    in.part_start = (uintptr_t)start;
    in.part_bytes = bytes;
    in.step = step;
}

static bool covers(const flp_host_workspace_part &part, size_t offset, size_t bytes) {
    return offset - part.offset < part.bytes && bytes <= part.bytes - (offset - part.offset);
}

// In a workspace only what lives may be touched.
void GlobalMemory::check_parts(const Thread &thread, const Allocation &in, const void *at, size_t bytes, const char *verb) const {
    const size_t offset = (uintptr_t)at - in.part_start;
    std::string dead;

    if (offset >= in.part_bytes) return;
    for (const flp_host_workspace_part &part : in.parts)
        if (part.lives && covers(part, offset, bytes)) return;
    for (const flp_host_workspace_part &part : in.parts)
        if (!part.lives && covers(part, offset, bytes)) dead += format("; \"%s\" lives from \"%s\" to \"%s\"", part.name, part.first, part.last);
    machine.fail(format("workspace: %s %zu bytes at offset %zu, where no part lives at \"%s\"%s", verb, bytes, offset, in.step, dead.c_str()), &thread);
}

GlobalMemory::Allocation &GlobalMemory::find(const Thread &thread, const void *at, size_t bytes, const char *verb) {
    Allocation &in = find_allocation(thread, at, bytes, verb);

    if (!in.parts.empty()) check_parts(thread, in, at, bytes, verb);
    return in;
}

GlobalMemory::Allocation &GlobalMemory::find_allocation(const Thread &thread, const void *at, size_t bytes, const char *verb) {
    const uintptr_t address = (uintptr_t)at;

    Allocation *&recent = recent_[address >> 12 & 255];

    if (recent && recent->holds(address, bytes)) return *recent;
    auto behind = allocations_.upper_bound(address);
    if (behind != allocations_.begin()) {
        Allocation &found = *std::prev(behind)->second;
        if (found.holds(address, bytes) && !__asan_region_is_poisoned(const_cast<void *>(at), bytes)) return *(recent = &found);
        if (address - found.start < found.bytes + 4096)
            machine.fail(
                format("global memory: %s %zu bytes at offset %zu of %s of %zu bytes", verb, bytes, (size_t)(address - found.start), found.what, found.bytes),
                &thread);
    }
    machine.fail(format("global memory: %s %zu bytes at %p, which is no device memory", verb, bytes, at), &thread);
}

static uint8_t mask_of(uintptr_t at, size_t bytes) { return bytes >= 4 ? 15 : (uint8_t)(((1u << bytes) - 1) << at % 4); }

void GlobalMemory::Access::note(const void *place, uint32_t number, uint8_t bytes) {
    if (launch == number) {
        mask |= bytes;
        return;
    }
    before = launch;
    mask_before = mask;
    pc = place;
    launch = number;
    mask = bytes;
}

uint32_t GlobalMemory::Access::other_than(uint32_t number, uint8_t bytes) const {
    if (launch != number && mask & bytes) return launch;
    return mask_before & bytes ? before : 0;
}

// That of the address and those behind it.
GlobalMemory::Word *GlobalMemory::Allocation::word_of(uintptr_t at) {
    if (!accesses) accesses = (Word *)calloc(words(), sizeof(Word));
    if (!accesses) abort();
    return accesses + (at / 4 - start / 4);
}

// What a launch before this one did, which may not be complete. what: "wrote".
void GlobalMemory::check_launches(const Attempt &attempt, const Access &access, uint8_t mask, const char *what) const {
    const uint32_t other = access.other_than(launch_order.number(), mask);

    if (other > attempt.launches)
        machine.fail(format("dependent launch: %s %zu bytes at %#zx, which %s %s%s and may still be at, without griddepcontrol.wait between", attempt.verb,
                            attempt.bytes, (size_t)attempt.at, launch_order.describe(other).c_str(), what,
                            other == access.launch ? describe_place(access.pc).c_str() : ""),
                     &attempt.thread);
}

// Clusters run one after another here, side by side on a GPU: what another one wrote is a race unless an atomic stands between.
void GlobalMemory::check_writer(const Attempt &attempt, const Word &word, uint8_t mask) const {
    const Clock &clock = attempt.thread.clock;
    const bool is_own = word.cluster == machine.cluster_number;

    check_launches(attempt, word.write, mask, "wrote");
    if (word.write.launch != launch_order.number() || (attempt.is_atomic && word.is_atomic) || !(word.writer_mask & mask)) return;
    if (is_own ? !clock.has(word.writer) : word.cluster >= clock.clusters)
        machine.fail(format("data race in global memory: %s %zu bytes at %#zx, which %s wrote with nothing between that orders the two", attempt.verb,
                            attempt.bytes, (size_t)attempt.at, is_own ? describe_agent(word.writer.agent).c_str() : "another cluster"),
                     &attempt.thread);
}

void GlobalMemory::read_words(const Attempt &attempt, Allocation &in, bool is_constant) const {
    const uint32_t launch = launch_order.number();
    const uint8_t mask = mask_of(attempt.at, attempt.bytes);
    Word *word = in.word_of(attempt.at), *end = in.word_of(attempt.at + attempt.bytes - 1) + 1;

    for (; word < end; word++) {
        check_writer(attempt, *word, mask);
        if (is_constant && word->write.launch == launch)
            machine.fail(format("ld.global.nc: %zu bytes at %#zx, which this kernel writes", attempt.bytes, (size_t)attempt.at), &attempt.thread);
        word->read.note(attempt.thread.pc, launch, mask);
    }
}

void GlobalMemory::write_words(const Attempt &attempt, Allocation &in, Epoch epoch) const {
    const uint8_t mask = mask_of(attempt.at, attempt.bytes);
    Word *word = in.word_of(attempt.at), *end = in.word_of(attempt.at + attempt.bytes - 1) + 1;

    for (; word < end; word++) {
        check_writer(attempt, *word, mask);
        check_launches(attempt, word->read, mask, "read");
        word->write.note(attempt.thread.pc, launch_order.number(), mask);
        word->writer = epoch;
        word->cluster = machine.cluster_number;
        word->writer_mask = mask;
        word->is_atomic = attempt.is_atomic;
    }
}

void GlobalMemory::read(const Thread &thread, const void *at, size_t bytes) {
    read_words({thread, (uintptr_t)at, bytes, thread.clock.launches, false, "a read of"}, find(thread, at, bytes, "a read of"), false);
}

void GlobalMemory::read_constant(const Thread &thread, const void *at, size_t bytes) {
    read_words({thread, (uintptr_t)at, bytes, thread.clock.launches, false, "a read of"}, find(thread, at, bytes, "a read of"), true);
}

void GlobalMemory::write(const Thread &thread, const void *at, size_t bytes) {
    write_words({thread, (uintptr_t)at, bytes, thread.clock.launches, false, "a write of"}, find(thread, at, bytes, "a write of"), thread.now());
}

// Atomics order what other clusters did before: the pattern by which the last block to arrive takes over.
void GlobalMemory::atomic(Thread &thread, const void *at, size_t bytes) {
    write_words({thread, (uintptr_t)at, bytes, thread.clock.launches, true, "an atomic on"}, find(thread, at, bytes, "an atomic on"), thread.now());
    thread.clock.clusters = machine.cluster_number;
}

// An addition is a write like others: in which order numbers are added decides their sum's bits.
void GlobalMemory::engine_write(const Thread &thread, const void *at, size_t bytes, Epoch epoch, uint32_t launches) {
    static const char verb[] = "the copy engine's write of";

    write_words({thread, (uintptr_t)at, bytes, launches, false, verb}, find(thread, at, bytes, verb), epoch);
}

} // namespace host

static std::mutex allocation; // plans are made by several threads; no kernel runs then

extern "C" void flp_host_machine_add_memory(void *start, size_t bytes) {
    std::lock_guard<std::mutex> lock(allocation);
    host::global_memory.add(start, bytes, "an allocation");
}

extern "C" void flp_host_machine_remove_memory(void *start) {
    std::lock_guard<std::mutex> lock(allocation);
    host::global_memory.remove(start);
}

extern "C" void flp_host_machine_set_parts(void *start, size_t bytes, const flp_host_workspace_part *parts, int count, const char *step) {
    host::global_memory.set_parts(start, bytes, parts, count, step);
}
