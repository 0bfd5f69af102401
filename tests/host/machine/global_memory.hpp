// Device memory: what was allocated, who wrote each word in this launch, and what the launch before wrote.
#ifndef FLP_TESTS_HOST_MACHINE_GLOBAL_MEMORY_HPP
#define FLP_TESTS_HOST_MACHINE_GLOBAL_MEMORY_HPP
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "host/machine/clock.hpp"

namespace host {

struct Thread;

class GlobalMemory {
public:
    void add(void *start, size_t bytes, const char *what);
    void remove(void *start);
    void begin_kernel();

    // Each ends the launch where the access breaks a rule. what: "read of", "write to".
    void read(const Thread &thread, const void *at, size_t bytes);
    void write(const Thread &thread, const void *at, size_t bytes);
    void atomic(Thread &thread, const void *at, size_t bytes);
    // A read through the cache that nobody keeps coherent: the memory is not written during the kernel.
    void read_constant(const Thread &thread, const void *at, size_t bytes);
    // By the copy engine in the thread's name; whoever has not waited for the epoch does not see it.
    void engine_write(const Thread &thread, const void *at, size_t bytes, Epoch epoch, bool adds);

private:
    // Of a word: the last write in the launch of that number. 0: none.
    struct Writer {
        Epoch epoch;
        uint32_t cluster, launch;
        uint8_t mask;
        bool is_atomic, has_predecessor; // the launch before wrote it too
    };
    struct Allocation {
        uintptr_t start = 0;
        size_t bytes = 0;
        const char *what = "";
        Writer *writers = nullptr; // from the first write on: of each word, pages that nobody wrote cost nothing

        Allocation(uintptr_t begin, size_t size, const char *name) : start(begin), bytes(size), what(name) {}
        Allocation(const Allocation &) = delete;
        ~Allocation();
        bool holds(uintptr_t at, size_t count) const { return at - start < bytes && count <= bytes - (at - start); }
        size_t words() const { return (start + bytes + 3) / 4 - start / 4; }
    };
    Allocation &find(const Thread &thread, const void *at, size_t bytes, const char *verb);
    void check_writer(const Thread &thread, const Allocation &in, const void *at, size_t bytes, bool is_atomic, const char *verb) const;
    void record(Epoch epoch, Allocation &in, const void *at, size_t bytes, bool is_atomic);

    std::map<uintptr_t, std::unique_ptr<Allocation>> allocations_;
    Allocation *recent_[4] = {}; // that accesses were found in
    unsigned next_recent_ = 0;
    uint32_t launch_ = 1;
};

extern GlobalMemory global_memory;

} // namespace host
#endif
