// The machine's state: the blocks, warps and threads of the cluster that runs, its clock and its scheduler.
#ifndef FLP_TESTS_HOST_MACHINE_MACHINE_HPP
#define FLP_TESTS_HOST_MACHINE_MACHINE_HPP
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/machine/clock.hpp"
#include "host/machine/fiber.hpp"
#include "host/machine/machine_api.h"
#include "host/machine/shared_memory.hpp"
#include "host/machine/wgmma.hpp"

namespace host {

struct Block;
struct Thread;

// What a blocked thread waits for, put into words only for a report.
struct Waiting {
    std::string (*describe)(const void *object, uint64_t detail);
    const void *object;
    uint64_t detail;
};

// A cp.async that has not been waited for.
struct PendingCopy {
    uint32_t to;
    const unsigned char *from;
    int bytes, valid;
    uint64_t group;
};

// A thread's copies from shared memory, in groups (cp.async.bulk). Each kind of completion is an agent of its own.
struct BulkThread {
    uint16_t reads = 0, writes = 0;        // agents: 0 until the thread's first copy
    uint64_t committed = 0, completed = 0; // groups
    std::vector<int> pending;              // copies of each group that is not complete; the last entry is still open
    bool waits = false;
};

struct Thread {
    Fiber fiber;
    Block *block = nullptr;
    int index = 0, lane = 0;
    uint16_t agent = 0;
    Clock clock;
    bool is_exited = false;
    const void *pc = nullptr;        // of the kernel's last call, for reports
    Waiting waits_for;               // while it is blocked
    int registers = 0;               // setmaxnreg
    std::vector<PendingCopy> copies; // of which the first ones have arrived
    size_t copies_arrived = 0;
    uint64_t copy_group = 0; // that the next commit closes
    WgmmaThread wgmma;
    BulkThread bulk;

    Epoch now() const { return {clock.seen[agent], agent}; }
    // What others join from here on does not hold what this thread does later.
    void step() { clock.seen[agent]++; }
};

// Lanes of a warp that execute one instruction together.
struct Collective {
    const char *instruction;
    uint32_t mask, arrived;
    void *lane[32]; // what each brought
};

struct Warp {
    std::vector<Collective> pending;
};

struct BarrierState {
    int arrived = 0, wanted = 0;
    Clock clock;
    std::vector<Thread *> waiting;
};

struct Mbarrier {
    uint16_t agent = 0;
    Epoch initialised;
    bool is_fenced = false; // the initialisation is visible to the cluster and the copy engine
    int arrivals = 0, pending = 0;
    int64_t bytes = 0;   // announced and not completed
    uint32_t phases = 0; // completed
    Clock gathering, released;
    std::vector<Thread *> waiting;
};

struct Block {
    int rank = 0;           // in its cluster
    unsigned index[3] = {}; // blockIdx
    SharedMemory shared;
    std::vector<Thread *> threads;
    std::vector<Warp> warps;
    std::deque<WgmmaGroup> groups; // warpgroups
    BarrierState barriers[16];
    std::map<uint32_t, Mbarrier> mbarriers; // by address in shared memory
    int live_threads = 0;
    bool allows_next = false;       // the next launch (griddepcontrol.launch_dependents)
    uint32_t complete_for_next = 0; // ... and launches up to this one were complete then
    uint32_t launches_at_end = 0;   // up to this one they were complete for a thread that has ended
    std::vector<Epoch> visits;      // the last access from outside by each agent: other blocks' threads, the copy engine
    int free_registers = 0;
    std::vector<Thread *> wanting_registers;
};

void note_visit(Block &block, Epoch visit);

// Work of an asynchronous engine: does a piece and says whether that was all.
using Job = std::function<bool()>;

class Machine {
public:
    bool launch(const flp_host_launch &launch, std::string *message);

    // The thread that runs; null outside kernels.
    Thread *current = nullptr;
    std::vector<std::unique_ptr<Block>> blocks; // of the cluster
    BarrierState cluster_barrier;
    const flp_host_launch *running = nullptr;
    uint32_t cluster_number = 0; // of the launch

    // Lets others run until somebody wakes this thread.
    void wait(const Waiting &waits_for);
    void wake(Thread *thread);
    void wake_all(std::vector<Thread *> &threads);
    void start_job(Job job) { jobs_.push_back(std::move(job)); }
    uint32_t random(uint32_t below);
    uint16_t new_agent();
    size_t agents() const { return agents_; }

    // Ends the launch with a message; the thread to blame is `by`, or the one that runs.
    [[noreturn]] void fail(const std::string &rule, const Thread *by = nullptr);

private:
    static void thread_main(void *thread);
    void start_cluster(unsigned first);
    void start_block(Block &block);
    bool run_cluster();
    void exit_thread();
    void check_end(const Block &block);
    void go_on();
    std::string describe_deadlock() const;

    std::vector<std::unique_ptr<Thread>> pool_; // threads are reused, with their stacks
    std::vector<Thread *> runnable_;
    std::vector<Job> jobs_;
    std::vector<std::vector<unsigned char>> parameters_;
    std::vector<void *> parameter_pointers_;
    Fiber main_;
    std::string failure_;
    bool failed_ = false;
    uint64_t random_state_ = 0;
    uint32_t eagerness_ = 0; // of the engines: of 16 choices, how many go to them
    size_t used_ = 0, agents_ = 0, live_threads_ = 0;
};

extern Machine machine;

std::string describe_thread(const Thread &thread);

} // namespace host
#endif
