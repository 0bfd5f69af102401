// Makes a block's shared memory, out of what blocks before it have left.
#include "host/machine/shared_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sanitizer/asan_interface.h>

namespace host {

static std::vector<std::unique_ptr<SharedStorage>> spare;

SharedStorage::SharedStorage() : memory((unsigned char *)aligned_alloc(1024, memory_bytes)), words(most_bytes / 4), users(words.size() / group_words) {
    if (!memory) abort();
}

SharedStorage::~SharedStorage() {
    __asan_unpoison_memory_region(memory, memory_bytes);
    free(memory);
}

void SharedStorage::renew(size_t group) {
    std::fill_n(words.begin() + (long)(group * group_words), group_words, Word());
    users[group] = user;
}

SharedMemory::~SharedMemory() {
    if (storage_) spare.push_back(std::move(storage_));
}

// Red zones on both sides, and bytes that make no sense as numbers: the base is 1024-byte aligned as a kernel may ask.
void SharedMemory::create(size_t bytes) {
    if (bytes > SharedStorage::most_bytes) abort();
    if (spare.empty()) spare.push_back(std::make_unique<SharedStorage>());
    storage_ = std::move(spare.back());
    spare.pop_back();
    storage_->user++;
    base_ = storage_->memory + SharedStorage::red_zone;
    bytes_ = bytes;
    __asan_poison_memory_region(storage_->memory, SharedStorage::memory_bytes);
    __asan_unpoison_memory_region(base_, bytes);
    memset(base_, 0xff, bytes);
}

} // namespace host
