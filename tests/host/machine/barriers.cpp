// Barriers: bar.sync of a block by number, barrier.cluster, bar.warp.sync. All order what came before them.
#include "host/machine/barriers.hpp"

#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

static void complete(BarrierState &barrier) {
    for (Thread *thread : barrier.waiting) thread->clock.join_after_arrival(barrier.clock, thread->now());
    barrier.arrived = 0;
    machine.wake_all(barrier.waiting);
}

static std::string describe_barrier(const void *object, uint64_t) {
    auto *barrier = (const BarrierState *)object;

    for (const auto &block : machine.blocks)
        if (barrier >= block->barriers && barrier < block->barriers + 16)
            return format("barrier %d of block %d, where %d of %d threads have arrived", (int)(barrier - block->barriers), block->rank, barrier->arrived,
                          barrier->wanted);
    return format("the cluster's barrier, where %d of %d threads have arrived", barrier->arrived, barrier->wanted);
}

// wanted: threads that must arrive.
static void arrive_and_wait(BarrierState &barrier, int wanted) {
    Thread &self = *machine.current;

    if (barrier.arrived == 0) barrier.clock.assign(self.clock);
    else barrier.clock.join(self.clock);
    self.step();
    barrier.wanted = wanted;
    barrier.waiting.push_back(&self);
    barrier.arrived++;
    if (barrier.arrived == wanted) complete(barrier);
    machine.wait({describe_barrier, &barrier, 0});
}

// threads: how many take part; 0: all of the block that have not ended.
static BarrierState &find_barrier(int number, int threads, int &wanted) {
    Block &block = *machine.current->block;

    if (number < 0 || number > 15) machine.fail(format("barrier: number %d, wanted 0 .. 15", number));
    if (threads % 32 != 0) machine.fail(format("barrier %d: %d threads, wanted whole warps", number, threads));
    BarrierState &barrier = block.barriers[number];
    wanted = threads ? threads : block.live_threads;
    if (barrier.arrived > 0 && threads && barrier.wanted != wanted)
        machine.fail(format("barrier %d: threads arrive with different counts, %d and %d", number, barrier.wanted, wanted));
    return barrier;
}

static int live_threads_of_cluster() {
    int count = 0;
    for (const auto &block : machine.blocks) count += block->live_threads;
    return count;
}

void barriers_after_exit(Block &block) {
    BarrierState &barrier = block.barriers[0];

    if (barrier.arrived > 0 && barrier.arrived == block.live_threads) complete(barrier);
    if (machine.cluster_barrier.arrived > 0 && machine.cluster_barrier.arrived == live_threads_of_cluster()) complete(machine.cluster_barrier);
    // Whatever touches an ended block's shared memory afterwards is an error; the memory itself stays until the cluster ends.
}

} // namespace host

using namespace host;

FLP_HOST_API void flp_host_barrier(int number, int threads) {
    FLP_HOST_ENTER();
    int wanted;
    BarrierState &barrier = find_barrier(number, threads, wanted);

    arrive_and_wait(barrier, wanted);
}

FLP_HOST_API void flp_host_cluster_barrier(void) {
    FLP_HOST_ENTER();
    arrive_and_wait(machine.cluster_barrier, live_threads_of_cluster());
}

FLP_HOST_API int flp_host_cluster_rank(void) { return machine.current->block->rank; }
