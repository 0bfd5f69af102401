// The rules for ordinary accesses to shared memory, also for the instructions that read or write it in a thread's name.
#ifndef FLP_TESTS_HOST_MACHINE_ACCESS_HPP
#define FLP_TESTS_HOST_MACHINE_ACCESS_HPP
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "host/machine/shared_memory.hpp"

namespace host {

struct Block;

// Each ends the launch where the access breaks a rule, and else records it. what: "a read", "ldmatrix".
void read_shared(Thread &thread, Block &block, uint32_t address, size_t bytes, const char *what);
void write_shared(Thread &thread, Block &block, uint32_t address, size_t bytes, const char *what);

// Whether the thread may overwrite the word: nobody may still read or write it.
bool may_overwrite(const Thread &thread, const Word &word, uint8_t mask);
// Ends the launch with the rule that forbids it. what: "a write", address: of the word.
[[noreturn]] void refuse_overwrite(const Thread &thread, const Block &block, const Word &word, uint8_t mask, uint32_t address, const char *what);
std::string describe_address(const Block &block, uint32_t address);
void check_range(const Thread &thread, const Block &block, uint32_t address, size_t bytes, const char *what);
void record_read(Word &word, Epoch epoch, const Clock &clock);

// What an instruction moves, mostly 4, 8 or 16 bytes: memcpy with a size that is not constant goes through the address sanitizer.
inline void copy_register(void *to, const void *from, int bytes) {
    switch (bytes) {
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    default:
        memcpy(to, from, (size_t)bytes);
    }
}

} // namespace host
#endif
