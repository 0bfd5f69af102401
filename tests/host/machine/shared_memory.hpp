// A block's shared memory: its bytes between red zones, and for each word who wrote and read it last.
#ifndef FLP_TESTS_HOST_MACHINE_SHARED_MEMORY_HPP
#define FLP_TESTS_HOST_MACHINE_SHARED_MEMORY_HPP
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/machine/clock.hpp"

namespace host {

struct Thread;

enum class Content : uint8_t {
    nothing,        // never written
    generic,        // by ordinary stores
    copied,         // by the copy engine, completed on an mbarrier
    copying,        // ... not completed yet
    copying_thread, // by cp.async, not waited for yet
    mbarrier
};

struct Word {
    Epoch write, reads[4];
    uint8_t initialised = 0, write_mask = 0; // a bit for each byte
    Content content = Content::nothing;
    uint8_t swizzle = 0; // that the copy engine wrote it with: 0 for none, 1, 2, 3 for 32, 64, 128 bytes
    bool has_place = false;
    int32_t column = 0, row = 0; // its place in the tensor that the copy engine took it from
};

// The most that a block may have, between red zones, and its words: kept from block to block, since making them takes longer than many a
// kernel. A group of words is as new where its number is not the present user's.
struct SharedStorage {
    static constexpr size_t most_bytes = 228 << 10, red_zone = 4096, group_words = 64;
    static constexpr size_t memory_bytes = red_zone + most_bytes + 1024 + red_zone;

    unsigned char *memory;
    std::vector<Word> words;
    std::vector<uint32_t> users; // of each group
    uint32_t user = 0;

    SharedStorage();
    ~SharedStorage();
    Word &word(size_t index) {
        if (users[index / group_words] != user) renew(index / group_words);
        return words[index];
    }

private:
    void renew(size_t group);
};

class SharedMemory {
public:
    // Addresses in shared memory start behind what the system keeps for itself.
    static constexpr uint32_t first_address = 1024;

    ~SharedMemory();
    void create(size_t bytes);
    void destroy();

    unsigned char *base() const { return base_; }
    uint32_t bytes() const { return (uint32_t)bytes_; }
    bool holds(const void *pointer) const { return (uintptr_t)pointer - (uintptr_t)base_ < bytes_; }
    bool holds(uint32_t address, size_t count) const { return address >= first_address && address - first_address + count <= bytes_; }
    uint32_t address_of(const void *pointer) const { return first_address + (uint32_t)((uintptr_t)pointer - (uintptr_t)base_); }
    unsigned char *at(uint32_t address) const { return base_ + (address - first_address); }
    Word &word(uint32_t address) { return storage_->word((address - first_address) / 4); }

private:
    std::unique_ptr<SharedStorage> storage_;
    unsigned char *base_ = nullptr;
    size_t bytes_ = 0;
};

} // namespace host
#endif
