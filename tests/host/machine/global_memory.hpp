// Device memory: what was allocated, and of each word who wrote and who read it last, in which launch.
#ifndef FLP_TESTS_HOST_MACHINE_GLOBAL_MEMORY_HPP
#define FLP_TESTS_HOST_MACHINE_GLOBAL_MEMORY_HPP
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "host/machine/clock.hpp"
#include "host/machine/machine_api.h"

namespace host {

struct Thread;

class GlobalMemory {
public:
    void add(void *start, size_t bytes, const char *what);
    void remove(void *start);
    void set_parts(void *start, size_t bytes, const flp_host_workspace_part *parts, int count, const char *step);

    // Each ends the launch where the access breaks a rule. what: "read of", "write to".
    void read(const Thread &thread, const void *at, size_t bytes);
    void write(const Thread &thread, const void *at, size_t bytes);
    void atomic(Thread &thread, const void *at, size_t bytes);
    // A read through the cache that nobody keeps coherent: the memory is not written during the kernel.
    void read_constant(const Thread &thread, const void *at, size_t bytes);
    // By the copy engine in the thread's name; whoever has not waited for the epoch does not see it. launches: up to this one they were complete
    // when the thread asked for it.
    void engine_write(const Thread &thread, const void *at, size_t bytes, Epoch epoch, uint32_t launches);

private:
    // A word's last accesses of one kind. launch 0: none.
    struct Access {
        const void *pc;
        uint32_t launch, before; // the last one's, and the last of a launch before that
        uint8_t mask, mask_before;

        void note(const void *at, uint32_t number, uint8_t bytes);
        // The last launch before `number` with an access to one of the bytes.
        uint32_t other_than(uint32_t number, uint8_t bytes) const;
    };
    struct Word {
        Access write, read;
        Epoch writer; // of the last write alone:
        uint32_t cluster;
        uint8_t writer_mask;
        bool is_atomic;
    };
    struct Allocation {
        uintptr_t start = 0;
        size_t bytes = 0;
        const char *what = "";
        Word *accesses = nullptr;                   // from the first on: of each word, pages that nobody touched cost nothing
        std::vector<flp_host_workspace_part> parts; // of the first part_bytes from part_start on; offsets from there
        uintptr_t part_start = 0;
        size_t part_bytes = 0;
        const char *step = "";

        Allocation(uintptr_t begin, size_t size, const char *name) : start(begin), bytes(size), what(name) {}
        Allocation(const Allocation &) = delete;
        ~Allocation();
        bool holds(uintptr_t at, size_t count) const { return at - start < bytes && count <= bytes - (at - start); }
        size_t words() const { return (start + bytes + 3) / 4 - start / 4; }
        Word *word_of(uintptr_t at);
    };
    Allocation &find(const Thread &thread, const void *at, size_t bytes, const char *verb);
    Allocation &find_allocation(const Thread &thread, const void *at, size_t bytes, const char *verb);
    void check_parts(const Thread &thread, const Allocation &in, const void *at, size_t bytes, const char *verb) const;
    // What is known of an access, for reports too.
    struct Attempt {
        const Thread &thread;
        uintptr_t at;
        size_t bytes;
        uint32_t launches; // complete for it
        bool is_atomic;
        const char *verb;
    };
    void check_launches(const Attempt &attempt, const Access &access, uint8_t mask, const char *what) const;
    void check_writer(const Attempt &attempt, const Word &word, uint8_t mask) const;
    void read_words(const Attempt &attempt, Allocation &in, bool is_constant) const;
    void write_words(const Attempt &attempt, Allocation &in, Epoch epoch) const;

    std::map<uintptr_t, std::unique_ptr<Allocation>> allocations_;
    Allocation *recent_[256] = {}; // that accesses to a page were found in, by the page's number
};

extern GlobalMemory global_memory;

} // namespace host
#endif
