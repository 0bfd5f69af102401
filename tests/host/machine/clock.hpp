// Vector clocks: what has happened before what a thread does now, and what of it the async proxy may see.
#ifndef FLP_TESTS_HOST_MACHINE_CLOCK_HPP
#define FLP_TESTS_HOST_MACHINE_CLOCK_HPP
#include <cstddef>
#include <cstdint>
#include <vector>

namespace host {

// A moment of one agent: a thread, a warpgroup's matrix products, or the copies that complete on one mbarrier. Clock 0: never.
struct Epoch {
    uint32_t clock = 0;
    uint16_t agent = 0;
    bool operator==(const Epoch &other) const { return clock == other.clock && agent == other.agent; }
};

struct Clock {
    std::vector<uint32_t> seen;   // of each agent of the cluster, the latest moment that lies in the past
    std::vector<uint32_t> fenced; // ... and that a proxy fence has made visible to the async proxy; empty: none
    uint32_t clusters = 0;        // clusters with a smaller number lie in the past as a whole

    bool has(Epoch e) const { return seen[e.agent] >= e.clock; }
    bool has_fenced(Epoch e) const { return !fenced.empty() && fenced[e.agent] >= e.clock; }
    void fence() { join(fenced, seen); }
    void join(const Clock &other)
    {
        join(seen, other.seen);
        join(fenced, other.fenced);
        if (other.clusters > clusters) clusters = other.clusters;
    }

private:
    static void join(std::vector<uint32_t> &to, const std::vector<uint32_t> &from)
    {
        if (to.size() < from.size()) to.resize(from.size());
        uint32_t *a = to.data();
        const uint32_t *b = from.data();
        for (size_t i = 0, n = from.size(); i < n; i++) a[i] = a[i] < b[i] ? b[i] : a[i];
    }
};

} // namespace host
#endif
