// mbarriers as the copy engine uses them.
#ifndef FLP_TESTS_HOST_MACHINE_MBARRIER_HPP
#define FLP_TESTS_HOST_MACHINE_MBARRIER_HPP
#include <cstdint>

namespace host {

struct Block;
struct Clock;
struct Mbarrier;
struct Thread;

// The barrier at the address, whose initialisation the thread must see. by_engine: through the copy engine or from another block, which
// takes a fence as well.
Mbarrier &mbarrier_at(const Thread &thread, Block &block, uint32_t address, bool by_engine);
// released: joins what the phase hands on; null: nothing.
void mbarrier_complete_bytes(const Thread &by, Block &block, uint32_t address, int64_t bytes, const Clock *released = nullptr);

} // namespace host
#endif
