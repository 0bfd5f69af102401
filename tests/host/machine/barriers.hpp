// Barriers of blocks and clusters, as the scheduler sees them.
#ifndef FLP_TESTS_HOST_MACHINE_BARRIERS_HPP
#define FLP_TESTS_HOST_MACHINE_BARRIERS_HPP

namespace host {

struct Block;

// A thread of the block has ended: barriers that wait for all the others may be complete.
void barriers_after_exit(Block &block);

} // namespace host
#endif
