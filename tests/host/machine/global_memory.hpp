// Device memory: what was allocated, who wrote each word in this launch, and what the launch before wrote.
#ifndef FLP_TESTS_HOST_MACHINE_GLOBAL_MEMORY_HPP
#define FLP_TESTS_HOST_MACHINE_GLOBAL_MEMORY_HPP
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

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
    struct Allocation {
        size_t bytes;
        const char *what;
    };
    struct Writer {
        Epoch epoch;
        uint32_t cluster;
        uint8_t mask;
        bool is_atomic;
    };
    void check_bounds(const Thread &thread, const void *at, size_t bytes, const char *verb);
    void check_writer(const Thread &thread, const void *at, size_t bytes, bool is_atomic, const char *verb);
    void record(Epoch epoch, const void *at, size_t bytes, bool is_atomic);

    std::map<uintptr_t, Allocation> allocations_;
    uintptr_t last_start_ = 0, last_bytes_ = 0;
    std::unordered_map<uintptr_t, Writer> writers_, previous_writers_; // by address / 4
};

extern GlobalMemory global_memory;

} // namespace host
#endif
