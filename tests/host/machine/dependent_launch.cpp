// Follows what griddepcontrol.launch_dependents and griddepcontrol.wait make certain from launch to launch.
#include "host/machine/dependent_launch.hpp"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>

#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

LaunchOrder launch_order;

void LaunchOrder::begin(const flp_host_launch &launch) {
    complete_at_start_ = launch.dependent_launch ? complete_for_next_ : number();
    complete_for_next_ = complete_at_start_;
    overlaps_ = launch.dependent_launch != 0;
    waited_ = false;
    kernels_.push_back(launch.kernel);
}

// What follows waits for this launch alone, and takes those before it for complete as well.
std::string LaunchOrder::end() const {
    if (waited_ || !overlaps_) return "";
    return "dependent launch: the kernel ends, and no thread of it has waited for " + describe(number() - 1) + ", which what follows takes for complete";
}

// Any of a block's threads may be the first to allow: only what all that do have waited for is certain.
void LaunchOrder::allow(Block &block, const Thread &thread) {
    block.complete_for_next = block.allows_next ? std::min(block.complete_for_next, thread.clock.launches) : thread.clock.launches;
    block.allows_next = true;
}

// All blocks have to have allowed the next launch: what one of them waited for before that is complete.
void LaunchOrder::end_block(const Block &block) {
    complete_for_next_ = std::max(complete_for_next_, block.allows_next ? block.complete_for_next : block.launches_at_end);
}

int LaunchOrder::find_place(const void *pc) {
    size_t i = 0;

    while (i < wait_places.size() && wait_places[i].pc != pc) i++;
    if (i == wait_places.size()) wait_places.push_back({pc, describe(number()), 0});
    return (int)i;
}

void LaunchOrder::wait(Thread &thread, const void *pc) {
    if (!overlaps_) return;
    const int place = find_place(pc);
    wait_places[(size_t)place].calls++;
    if (place == ignored_wait) return;
    thread.clock.launches = number() - 1;
    waited_ = true;
}

std::string LaunchOrder::describe(uint32_t number) const {
    Dl_info facts;
    const bool is_known = number > 0 && number <= kernels_.size() && dladdr((const void *)kernels_[number - 1]->body, &facts) && facts.dli_sname;

    return is_known ? facts.dli_sname : "a kernel before";
}

} // namespace host

using namespace host;

FLP_HOST_API void flp_host_allow_next_kernel(void) { launch_order.allow(*machine.current->block, *machine.current); }

FLP_HOST_API void flp_host_wait_for_previous_kernel(void) { launch_order.wait(*machine.current, __builtin_return_address(0)); }

extern "C" int flp_host_machine_wait_count(void) { return (int)launch_order.wait_places.size(); }

extern "C" uint64_t flp_host_machine_wait_calls(int place) { return launch_order.wait_places[(size_t)place].calls; }

extern "C" void flp_host_machine_wait_describe(int place, char *text, size_t bytes) {
    const LaunchOrder::WaitPlace &one = launch_order.wait_places[(size_t)place];

    snprintf(text, bytes, "%s%s", one.kernel.c_str(), describe_place(one.pc).c_str());
}

extern "C" void flp_host_machine_wait_ignore(int place) { launch_order.ignored_wait = place; }
