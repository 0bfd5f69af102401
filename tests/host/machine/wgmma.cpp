// Warpgroup matrix products: the instruction stream of a warpgroup. PTX ISA, "wgmma"; the products themselves are wgmma_product.cpp's.
#include "host/machine/wgmma_product.hpp"

#include <cstring>

#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/report.hpp"

namespace host {

static const float poison = float_of_bits(0x7fffdead);

bool WgmmaInstruction::operator==(const WgmmaInstruction &other) const {
    return kind == other.kind && shape.n == other.shape.n && a == other.a && b == other.b && accumulates == other.accumulates &&
           takes_registers == other.takes_registers && pending == other.pending;
}

std::string WgmmaInstruction::describe() const {
    switch (kind) {
    case fence:
        return "wgmma.fence";
    case product:
        return format("wgmma.mma_async m64n%dk%d (descriptors %#llx, %#llx)", shape.n, shape.k, (unsigned long long)a, (unsigned long long)b);
    case commit:
        return "wgmma.commit_group";
    default:
        return format("wgmma.wait_group %d", pending);
    }
}

static WgmmaGroup &group_of(const Thread &thread) { return thread.block->groups[(size_t)thread.index / 128]; }

static WgmmaAccumulators *find_accumulators(WgmmaGroup &group, int lane, const float *d) {
    for (auto &one : group.accumulators)
        if (one->d[lane] == d) return one.get();
    return nullptr;
}

static WgmmaAccumulators *take_accumulators(WgmmaGroup &group, const WgmmaInstruction &instruction) {
    WgmmaAccumulators *found = find_accumulators(group, 0, instruction.d[0]);
    const int n = instruction.shape.n;

    if (found) return found;
    group.accumulators.push_back(std::make_unique<WgmmaAccumulators>());
    found = group.accumulators.back().get();
    memcpy(found->d, instruction.d, sizeof found->d);
    found->n = n;
    found->value.resize(64 * (size_t)n);
    for (int thread = 0; thread < 128; thread++)
        for (int i = 0; i < n / 2; i++) {
            found->value[wgmma_place(thread, i, n)] = found->d[thread][i];
            found->d[thread][i] = poison;
        }
    return found;
}

// Works through the queue, one product at a time.
static bool advance(WgmmaGroup &group) {
    wgmma_multiply(group.queue.front());
    group.queue.pop_front();
    group.executed++;
    while (!group.ends.empty() && group.ends.front() <= group.executed) {
        group.ends.pop_front();
        group.completed++;
    }
    machine.wake_all(group.waiting);
    return group.queue.empty();
}

// All 128 threads have come to the instruction.
static void issue(const Thread &thread, WgmmaGroup &group, const WgmmaInstruction &instruction) {
    if (instruction.kind == WgmmaInstruction::product) {
        WgmmaProduct product = wgmma_read_operands(thread, group, instruction);
        product.accumulators = take_accumulators(group, instruction);
        if (group.queue.empty()) machine.start_job([&group] { return advance(group); });
        group.queue.push_back(std::move(product));
        group.queued++;
    } else if (instruction.kind == WgmmaInstruction::commit) {
        group.committed++;
        if (group.executed < group.queued || !group.ends.empty()) group.ends.push_back(group.queued);
        else group.completed++;
        machine.wake_all(group.waiting);
    }
}

// Takes the thread's place in the warpgroup's stream: the threads need not come at once, but with the same instructions.
static WgmmaInstruction &join_stream(Thread &self, const WgmmaInstruction &wanted) {
    WgmmaGroup &group = group_of(self);
    const size_t at = (size_t)(self.wgmma.position++ - group.first);

    if (at == group.stream.size()) group.stream.push_back(wanted);
    WgmmaInstruction &there = group.stream[at];
    if (!(there == wanted))
        machine.fail(format("WGMMA: a thread executes %s where others of its warpgroup execute %s", wanted.describe().c_str(), there.describe().c_str()));
    return there;
}

static void arrive(Thread &self, WgmmaInstruction &instruction) {
    WgmmaGroup &group = group_of(self);

    instruction.arrived++;
    while (!group.stream.empty() && group.stream.front().arrived == 128) {
        WgmmaInstruction complete = group.stream.front();
        group.stream.pop_front();
        group.first++;
        issue(self, group, complete);
    }
}

static void span(WgmmaThread &state) {
    uintptr_t low = UINTPTR_MAX, high = 0;

    for (const auto &range : state.pending) {
        low = std::min(low, (uintptr_t)range.d);
        high = std::max(high, (uintptr_t)(range.d + range.count));
    }
    for (const auto &operand : state.operands) {
        low = std::min(low, (uintptr_t)operand.a);
        high = std::max(high, (uintptr_t)(operand.a + 4));
    }
    state.low = low;
    state.bytes = high > low ? high - low : 0;
}

static void hold(WgmmaThread &state, float *d, int count) {
    for (auto &range : state.pending)
        if (range.d == d) {
            range.group = state.committed + 1;
            return;
        }
    state.pending.push_back({d, count, state.committed + 1});
    span(state);
}

static void hold_operand(WgmmaThread &state, const uint32_t *a) {
    for (auto &operand : state.operands)
        if (operand.a == a) {
            operand.group = state.committed + 1;
            return;
        }
    state.operands.push_back({a, state.committed + 1});
    span(state);
}

// Hands the results of complete groups over.
static void deliver(Thread &self, uint64_t completed) {
    WgmmaGroup &group = group_of(self);
    auto &pending = self.wgmma.pending;

    for (size_t i = pending.size(); i-- > 0;) {
        if (pending[i].group > completed) continue;
        WgmmaAccumulators *from = find_accumulators(group, self.index % 128, pending[i].d);
        for (int j = 0; j < pending[i].count; j++) from->d[self.index % 128][j] = from->value[wgmma_place(self.index % 128, j, from->n)];
        from->d[self.index % 128] = nullptr;
        if (--from->undelivered == 0)
            for (size_t k = 0; k < group.accumulators.size(); k++)
                if (group.accumulators[k].get() == from) {
                    group.accumulators.erase(group.accumulators.begin() + (long)k);
                    break;
                }
        pending.erase(pending.begin() + (long)i);
        self.wgmma.is_fenced = false; // its registers may be used now, and have to be ordered again
    }
    span(self.wgmma);
}

static std::string describe_products_wait(const void *object, uint64_t wanted) {
    auto *group = (const WgmmaGroup *)object;

    return format("wgmma.wait_group for group %llu of its warpgroup, where %llu of %llu committed groups are complete%s", (unsigned long long)wanted,
                  (unsigned long long)group->completed, (unsigned long long)group->committed,
                  group->stream.empty()
                      ? ""
                      : format(" and %d of 128 threads came to %s", group->stream.front().arrived, group->stream.front().describe().c_str()).c_str());
}

} // namespace host

using namespace host;

static WgmmaInstruction make(WgmmaInstruction::Kind kind) {
    WgmmaInstruction instruction = {};
    instruction.kind = kind;
    return instruction;
}

FLP_HOST_API void flp_host_wgmma_fence(void) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;

    self.wgmma.is_fenced = true;
    arrive(self, join_stream(self, make(WgmmaInstruction::fence)));
}

// The thread's part of a product; set: what it alone brings.
template <class Set> static void multiply(float *d, const WgmmaInstruction &wanted, Set set) {
    Thread &self = *machine.current;
    const int n = wanted.shape.n;

    if (n % 8 != 0 || n < 8 || n > 256) machine.fail(format("WGMMA: n = %d, wanted a multiple of 8 in 8 .. 256", n));
    if (!self.wgmma.is_fenced) machine.fail("WGMMA: no wgmma.fence between the accumulators' last use and their product");
    WgmmaInstruction &instruction = join_stream(self, wanted);
    instruction.d[self.index % 128] = d;
    set(instruction, self.index % 128);
    hold(self.wgmma, d, n / 2);
    arrive(self, instruction);
}

FLP_HOST_API void flp_host_wgmma(float *d, int n, int k, int type, uint64_t a, uint64_t b, bool accumulates, bool transposed_a, bool transposed_b) {
    FLP_HOST_ENTER();
    WgmmaInstruction wanted = make(WgmmaInstruction::product);

    wanted.shape = {n, k, (Element)type, transposed_a, transposed_b};
    wanted.a = a;
    wanted.b = b;
    wanted.accumulates = accumulates;
    multiply(d, wanted, [](WgmmaInstruction &, int) {});
}

// PTX's figure for A of m64nNk8: four words a thread, at the rows lane / 4 and 8 below of its warp's 16, the columns lane % 4 and 4 further.
FLP_HOST_API void flp_host_wgmma_of_registers(float *d, int n, int k, int type, const uint32_t *a, uint64_t b, bool accumulates) {
    FLP_HOST_ENTER();
    WgmmaInstruction wanted = make(WgmmaInstruction::product);

    if ((Element)type != Element::tf32 || k != 8) machine.fail("WGMMA: A in registers is modelled for tf32");
    wanted.shape = {n, k, (Element)type, false, false};
    wanted.b = b;
    wanted.accumulates = accumulates;
    wanted.takes_registers = true;
    wanted.a_words.resize(64 * 8);
    hold_operand(machine.current->wgmma, a);
    multiply(d, wanted, [a](WgmmaInstruction &instruction, int thread) {
        const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4;
        for (int i = 0; i < 4; i++) instruction.a_words[(size_t)((row + i % 2 * 8) * 8 + column + i / 2 * 4)] = a[i];
    });
}

// The compiler takes A's registers for others behind the last statement that names them: one behind the wait for their products has to.
FLP_HOST_API void flp_host_wgmma_hold(const uint32_t *a, int count) {
    FLP_HOST_ENTER();
    WgmmaThread &state = machine.current->wgmma;

    for (size_t i = state.operands.size(); i-- > 0;) {
        if (state.operands[i].a < a || state.operands[i].a >= a + count) continue;
        if (state.operands[i].group > state.waited) machine.fail("WGMMA: registers of A are held no longer than before the wait for their products");
        state.operands.erase(state.operands.begin() + (long)i);
    }
    span(state);
}

FLP_HOST_API void flp_host_wgmma_commit(void) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;

    self.wgmma.committed++;
    arrive(self, join_stream(self, make(WgmmaInstruction::commit)));
}

FLP_HOST_API void flp_host_wgmma_wait(int pending) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    WgmmaGroup &group = group_of(self);
    WgmmaInstruction wanted = make(WgmmaInstruction::wait);

    wanted.pending = pending;
    arrive(self, join_stream(self, wanted));
    const uint64_t until = self.wgmma.committed > (uint64_t)pending ? self.wgmma.committed - (uint64_t)pending : 0;
    while (group.completed < until) {
        group.waiting.push_back(&self);
        machine.wait({describe_products_wait, &group, until});
    }
    if (self.clock.seen[group.agent] < until) self.clock.seen[group.agent] = (uint32_t)until;
    self.wgmma.waited = std::max(self.wgmma.waited, until);
    deliver(self, until);
}
