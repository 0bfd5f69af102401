// Runs a launch cluster by cluster: makes the threads, and a seeded scheduler picks which of them, or which engine, goes on.
#include "host/machine/machine.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "host/machine/barriers.hpp"
#include "host/machine/dependent_launch.hpp"
#include "host/machine/global_memory.hpp"
#include "host/machine/report.hpp"

namespace host {

Machine machine;

static constexpr size_t spare_agents = 128; // of a block: for mbarriers, and for the threads that copy in bulk

uint32_t Machine::random(uint32_t below) {
    // splitmix64
    uint64_t z = random_state_ += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(((z ^ z >> 31) & UINT32_MAX) * below >> 32);
}

uint16_t Machine::new_agent() {
    if (agents_ == current->clock.seen.size()) fail(format("machine: more than %zu mbarriers and copying threads a block", spare_agents));
    Clock::agents = agents_ + 1;
    return (uint16_t)agents_++;
}

void Machine::wake(Thread *thread) { runnable_.push_back(thread); }

void Machine::wake_all(std::vector<Thread *> &threads) {
    for (Thread *thread : threads) wake(thread);
    threads.clear();
}

void Machine::wait(const Waiting &waits_for) {
    current->waits_for = waits_for;
    go_on();
}

// Gives the processor to an engine's job or to another thread; returns when this thread has been picked again.
void Machine::go_on() {
    Thread *self = current;
    Fiber &from = self ? self->fiber : main_;

    for (;;) {
        bool idle = runnable_.empty();
        if (!jobs_.empty() && (idle || random(16) < eagerness_)) {
            size_t i = random((uint32_t)jobs_.size());
            Job job = std::move(jobs_[i]);
            jobs_[i] = std::move(jobs_.back());
            jobs_.pop_back();
            if (!job()) jobs_.push_back(std::move(job));
            continue;
        }
        if (idle && live_threads_ > 0) fail(describe_deadlock());
        if (idle) {
            current = nullptr;
            Fiber::switch_between(from, main_);
            return;
        }
        size_t i = random((uint32_t)runnable_.size());
        current = runnable_[i];
        runnable_[i] = runnable_.back();
        runnable_.pop_back();
        if (current != self) Fiber::switch_between(from, current->fiber);
        return;
    }
}

void Machine::fail(const std::string &rule, const Thread *by) {
    Thread *self = current;

    if (!by) by = self;
    failure_ = rule + "\n  " + describe_thread(*by) + describe_place(by->pc);
    failed_ = true;
    current = nullptr;
    Fiber::switch_between(self->fiber, main_);
    __builtin_unreachable();
}

void note_visit(Block &block, Epoch visit) {
    for (Epoch &known : block.visits)
        if (known.agent == visit.agent) {
            known = visit;
            return;
        }
    block.visits.push_back(visit);
}

// Shared memory goes with the block: somebody of it must have waited for everything that comes from outside.
void Machine::check_end(const Block &block) {
    for (const Epoch &visit : block.visits)
        if (std::none_of(block.threads.begin(), block.threads.end(), [&](const Thread *thread) { return thread->clock.has(visit); }))
            fail(format("cluster: block %d ends, and nothing in it has waited for %s, which reach into its shared memory", block.rank,
                        describe_agent(visit.agent).c_str()));
}

void Machine::exit_thread() {
    Block &block = *current->block;

    current->is_exited = true;
    block.launches_at_end = std::max(block.launches_at_end, current->clock.launches);
    if (--block.live_threads == 0) {
        check_end(block);
        launch_order.end_block(block);
    }
    live_threads_--;
    barriers_after_exit(block);
    go_on();
}

void Machine::thread_main(void *thread) {
    machine.current = (Thread *)thread;
    machine.running->kernel->body(machine.parameter_pointers_.data());
    machine.exit_thread();
}

void Machine::start_block(Block &block) {
    const flp_host_kernel &kernel = *running->kernel;

    block.shared.create((size_t)kernel.shared_bytes);
    block.live_threads = kernel.threads;
    block.warps.resize((size_t)kernel.threads / 32);
    for (int i = 0; i < kernel.threads / 128; i++) block.groups.emplace_back();
    for (int i = 0; i < kernel.threads; i++) {
        if (used_ == pool_.size()) pool_.push_back(std::make_unique<Thread>());
        Thread &thread = *pool_[used_];
        thread.block = &block;
        thread.index = i;
        thread.lane = i % 32;
        thread.agent = (uint16_t)used_++;
        thread.is_exited = false;
        thread.pc = nullptr;
        thread.waits_for = {};
        thread.registers = kernel.registers;
        thread.copies.clear();
        thread.copies_arrived = 0;
        thread.copy_group = 0;
        thread.wgmma = WgmmaThread();
        thread.bulk = BulkThread();
        thread.fiber.prepare(thread_main, &thread);
        block.threads.push_back(&thread);
        runnable_.push_back(&thread);
    }
}

void Machine::start_cluster(unsigned first) {
    const unsigned *grid = running->grid;
    const int size = running->kernel->cluster;

    blocks.clear();
    runnable_.clear();
    jobs_.clear();
    used_ = 0;
    cluster_barrier = BarrierState();
    for (int rank = 0; rank < size; rank++) {
        unsigned linear = first + (unsigned)rank;
        blocks.push_back(std::make_unique<Block>());
        Block &block = *blocks.back();
        block.rank = rank;
        block.index[0] = linear % grid[0];
        block.index[1] = linear / grid[0] % grid[1];
        block.index[2] = linear / grid[0] / grid[1];
        start_block(block);
    }
    live_threads_ = agents_ = used_;
    for (auto &block : blocks)
        for (WgmmaGroup &group : block->groups) group.agent = (uint16_t)agents_++;
    Clock::agents = agents_;
    for (size_t i = 0; i < used_; i++) {
        Thread &thread = *pool_[i];
        thread.clock.reset(agents_ + spare_agents * blocks.size());
        thread.clock.launches = launch_order.complete_at_start();
        thread.step();
    }
}

bool Machine::run_cluster() {
    go_on();
    current = nullptr;
    return !failed_;
}

bool Machine::launch(const flp_host_launch &launch, std::string *message) {
    const flp_host_kernel &kernel = *launch.kernel;
    const unsigned blocks_of_grid = launch.grid[0] * launch.grid[1] * launch.grid[2];

    running = &launch;
    failed_ = false;
    random_state_ = launch.seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    // Engines that work at once, sometimes, or only when no thread can go on.
    eagerness_ = (const uint32_t[]){1, 16, 0, 4}[launch.seed % 4];
    parameters_.clear();
    parameter_pointers_.clear();
    for (int i = 0; kernel.parameter_bytes[i] != 0; i++) {
        auto *from = (const unsigned char *)launch.parameters[i];
        parameters_.emplace_back(from, from + kernel.parameter_bytes[i]);
    }
    for (auto &parameter : parameters_) {
        // A tensor map lies at a multiple of 64 bytes.
        void *copy = aligned_alloc(128, (parameter.size() + 127) / 128 * 128);
        memcpy(copy, parameter.data(), parameter.size());
        parameter_pointers_.push_back(copy);
        global_memory.add(copy, parameter.size(), "a parameter");
    }
    launch_order.begin(launch);
    for (cluster_number = 0; !failed_ && cluster_number < blocks_of_grid / (unsigned)kernel.cluster; cluster_number++) {
        start_cluster(cluster_number * (unsigned)kernel.cluster);
        run_cluster();
    }
    if (!failed_ && !(failure_ = launch_order.end()).empty()) failed_ = true;
    for (void *copy : parameter_pointers_) {
        global_memory.remove(copy);
        free(copy);
    }
    blocks.clear();
    running = nullptr;
    if (failed_) *message = failure_;
    return !failed_;
}

std::string Machine::describe_deadlock() const {
    // Threads that wait for the same thing are one line.
    std::map<std::string, std::vector<const Thread *>> waits;
    std::string text = "deadlock: no thread can go on and no engine has work";

    for (const auto &block : blocks)
        for (const Thread *thread : block->threads)
            if (!thread->is_exited) waits[thread->waits_for.describe(thread->waits_for.object, thread->waits_for.detail)].push_back(thread);
    for (const auto &entry : waits) {
        const Thread *first = entry.second.front();
        text += format("\n  %zu thread%s, the first thread %d of block %d (warp %d): %s%s", entry.second.size(), entry.second.size() == 1 ? "" : "s",
                       first->index, first->block->rank, first->index / 32, entry.first.c_str(), describe_place(first->pc).c_str());
    }
    return text;
}

} // namespace host

extern "C" int flp_host_machine_launch(const flp_host_launch *launch, char *message, size_t bytes) {
    std::string text;
    bool succeeded = host::machine.launch(*launch, &text);

    if (!succeeded) snprintf(message, bytes, "%s", text.c_str());
    return succeeded;
}
