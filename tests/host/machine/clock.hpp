// Vector clocks: what has happened before what a thread does now, and what of it the async proxy may see.
#ifndef FLP_TESTS_HOST_MACHINE_CLOCK_HPP
#define FLP_TESTS_HOST_MACHINE_CLOCK_HPP
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace host {

// A moment of one agent: a thread, a warpgroup's matrix products, or the copies that complete on one mbarrier. Clock 0: never.
struct Epoch {
    uint32_t clock = 0;
    uint16_t agent = 0;
    bool operator==(const Epoch &other) const { return clock == other.clock && agent == other.agent; }
};

struct Clock {
    static inline size_t agents = 0; // of the cluster up to now: of others nobody knows a moment
    std::vector<uint32_t> seen;      // of each agent of the cluster, the latest moment that lies in the past
    std::vector<uint32_t> fenced;    // ... and that a proxy fence has made visible to the async proxy, never more than seen; empty: none
    uint32_t clusters = 0;           // clusters with a smaller number lie in the past as a whole
    uint32_t launches = 0;           // launches up to this one lie in the past as a whole

    bool has(Epoch e) const { return seen[e.agent] >= e.clock; }
    bool has_fenced(Epoch e) const { return !fenced.empty() && fenced[e.agent] >= e.clock; }
    void fence() { copy(fenced, seen); }
    // Starts an agent that knows nothing yet, among `agents`. Keeps its memory.
    void reset(size_t agents) {
        seen.assign(agents, 0);
        fenced.clear();
        clusters = launches = 0;
    }
    void assign(const Clock &other) {
        copy(seen, other.seen);
        copy(fenced, other.fenced);
        clusters = other.clusters;
        launches = other.launches;
    }
    void join(const Clock &other) {
        join(seen, other.seen);
        join(fenced, other.fenced);
        join_runs(other);
    }
    // join for an agent whose past the other holds but for the agent's own last step.
    void join_after_arrival(const Clock &other, Epoch own) {
        copy(seen, other.seen);
        seen[own.agent] = own.clock;
        copy(fenced, other.fenced);
        join_runs(other);
    }

private:
    void join_runs(const Clock &other) {
        if (other.clusters > clusters) clusters = other.clusters;
        if (other.launches > launches) launches = other.launches;
    }
    // Four moments, for the vector unit: every barrier joins the clocks of all its threads. Moments are below 2^31.
    typedef int32_t Lanes __attribute__((vector_size(16), aligned(4), may_alias));

    // Not memcpy, for which the address sanitizer looks at each byte.
    static void copy(std::vector<uint32_t> &to, const std::vector<uint32_t> &from) {
        to.resize(from.size());
        uint32_t *a = to.data();
        const uint32_t *b = from.data();
        size_t i = 0, n = from.empty() ? 0 : agents;
        for (; i + 4 <= n; i += 4) *(Lanes *)(a + i) = *(const Lanes *)(b + i);
        for (; i < n; i++) a[i] = b[i];
    }
    static void join(std::vector<uint32_t> &to, const std::vector<uint32_t> &from) {
        if (to.size() < from.size()) to.resize(from.size());
        uint32_t *a = to.data();
        const uint32_t *b = from.data();
        size_t i = 0, n = from.empty() ? 0 : agents;
        for (; i + 4 <= n; i += 4) {
            Lanes &x = *(Lanes *)(a + i);
            const Lanes y = *(const Lanes *)(b + i);
            x = x < y ? y : x;
        }
        for (; i < n; i++) a[i] = a[i] < b[i] ? b[i] : a[i];
    }
};

} // namespace host
#endif
