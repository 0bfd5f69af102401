// What a kernel asks about itself: its indices, its shared memory, and atomics.
#include "host/machine/dependent_launch.hpp"
#include "host/machine/global_memory.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

using namespace host;

struct dim3 {
    unsigned x, y, z;
};

FLP_HOST_API dim3 flp_host_thread_index() { return {(unsigned)machine.current->index, 0, 0}; }

FLP_HOST_API dim3 flp_host_block_index() {
    const unsigned *index = machine.current->block->index;
    return {index[0], index[1], index[2]};
}

FLP_HOST_API dim3 flp_host_block_dimensions() { return {(unsigned)machine.running->kernel->threads, 1, 1}; }

FLP_HOST_API dim3 flp_host_grid_dimensions() {
    const unsigned *grid = machine.running->grid;
    return {grid[0], grid[1], grid[2]};
}

FLP_HOST_API unsigned flp_host_launch_number() { return launch_order.number(); }

FLP_HOST_API unsigned char *flp_host_dynamic_shared() { return machine.current->block->shared.base(); }

FLP_HOST_API unsigned flp_host_shared_address(const void *pointer) {
    FLP_HOST_ENTER();
    const SharedMemory &shared = machine.current->block->shared;

    // One past the end has an address too.
    if (!shared.holds(pointer) && pointer != shared.base() + shared.bytes())
        machine.fail(format("shared memory: the address of %p is asked for, which lies outside the block's %u bytes", pointer, shared.bytes()));
    return shared.address_of(pointer);
}

FLP_HOST_API void flp_host_atomic(const void *at, unsigned long bytes) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;

    for (const auto &block : machine.blocks)
        if (block->shared.holds(at)) machine.fail("atomic: shared memory is not modelled here");
    global_memory.atomic(self, at, bytes);
}
