// Launches that overlap: of each thread, which launches before its own are complete. PTX ISA, "griddepcontrol".
#ifndef FLP_TESTS_HOST_MACHINE_DEPENDENT_LAUNCH_HPP
#define FLP_TESTS_HOST_MACHINE_DEPENDENT_LAUNCH_HPP
#include <cstdint>
#include <string>
#include <vector>

#include "host/machine/machine_api.h"

namespace host {

struct Block;
struct Thread;

// The launches of a stream, numbered from 1. Here one runs behind the other; which of them a GPU may run side by side is in the clocks.
//
// An overlapping launch may start when each block of the one before has allowed it or has ended: of that one nothing is certain then, neither
// what it reads nor what it writes. Certain is what a block of it had waited for when it allowed. Behind griddepcontrol.wait the one before is
// complete, and with it, since its own threads cannot all end before a wait of one of them returns, all before it.
class LaunchOrder {
public:
    void begin(const flp_host_launch &launch);
    // "", or the rule that the launch has broken at its end.
    std::string end() const;
    void allow(Block &block, const Thread &thread);
    void end_block(const Block &block);
    void wait(Thread &thread, const void *place);

    uint32_t number() const { return (uint32_t)kernels_.size(); }
    uint32_t complete_at_start() const { return complete_at_start_; }
    // The kernel's name.
    std::string describe(uint32_t number) const;

    // A griddepcontrol.wait in a kernel's code.
    struct WaitPlace {
        const void *pc;
        std::string kernel;
        uint64_t calls;
    };
    std::vector<WaitPlace> wait_places;
    int ignored_wait = -1;

private:
    int find_place(const void *pc);

    std::vector<const flp_host_kernel *> kernels_; // of each launch
    uint32_t complete_at_start_ = 0;               // launches up to this one are complete when this launch starts
    uint32_t complete_for_next_ = 0;               // ... when all its blocks have allowed the next
    bool overlaps_ = false;                        // this launch the one before
    bool waited_ = false;                          // ... and a thread of it has waited for that
};

extern LaunchOrder launch_order;

} // namespace host
#endif
