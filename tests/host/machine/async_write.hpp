// What asynchronous writes to shared memory have in common: nobody touches the destination until they have completed on an mbarrier.
#ifndef FLP_TESTS_HOST_MACHINE_ASYNC_WRITE_HPP
#define FLP_TESTS_HOST_MACHINE_ASYNC_WRITE_HPP
#include <cstdint>

#include "host/machine/clock.hpp"

namespace host {

struct Block;
struct Thread;

// From now on nobody may touch the destination, and nobody may be doing so still. what: "the copy engine's write". by_engine: through the
// async proxy, which sees other writes only behind a fence.
void begin_async_write(const Thread &by, Block &block, uint32_t to, uint32_t bytes, uint32_t barrier, const char *what, bool by_engine);
// When what arrives now completes: with the barrier's present phase. The block may not end before.
Epoch async_arrival(const Thread &by, Block &block, uint32_t barrier);
// 4 bytes that have come.
void place_async_word(Block &block, uint32_t at, const void *bytes, Epoch arrival);

} // namespace host
#endif
