// What the lanes of a warp do together: shuffles, votes, matrix fragments and mma.sync.
#include <cstring>

#include "host/machine/access.hpp"
#include "host/machine/kernel_api.hpp"
#include "host/machine/machine.hpp"
#include "host/machine/number.hpp"
#include "host/machine/report.hpp"

namespace host {

static std::string describe_warp(const void *object, uint64_t) {
    auto *thread = (const Thread *)object;
    const Warp &warp = thread->block->warps[(size_t)thread->index / 32];

    for (const Collective &one : warp.pending)
        if (one.mask >> thread->lane & 1)
            return format("%s with mask %08x in warp %d of block %d, where lanes %08x have not come", one.instruction, one.mask, thread->index / 32,
                          thread->block->rank, one.mask & ~one.arrived);
    return "its warp";
}

static Collective &find(Warp &warp, const char *instruction, uint32_t mask, int lane) {
    for (Collective &one : warp.pending) {
        if (one.mask == mask && one.instruction == instruction) return one; // names are literals of this file
        if (one.mask & mask)
            machine.fail(format("warp: lane %d executes %s with mask %08x while lanes %08x wait in %s with mask %08x", lane, instruction, mask, one.arrived,
                                one.instruction, one.mask));
    }
    warp.pending.push_back({instruction, mask, 0, {}});
    return warp.pending.back();
}

// Returns when all lanes of the mask have come; the last of them does the work for all. A lane's payload lies on its stack.
static void collect(const char *instruction, uint32_t mask, void *payload, void (*work)(Collective &)) {
    Thread &self = *machine.current;
    Warp &warp = self.block->warps[(size_t)self.index / 32];

    if (!(mask >> self.lane & 1)) machine.fail(format("%s: lane %d executes it with mask %08x, which leaves it out", instruction, self.lane, mask));
    Collective &one = find(warp, instruction, mask, self.lane);
    one.arrived |= 1u << self.lane;
    one.lane[self.lane] = payload;
    if (one.arrived != mask) {
        machine.wait({describe_warp, &self, 0});
        return;
    }
    Collective all = one;
    warp.pending.erase(warp.pending.begin() + (&one - warp.pending.data()));
    work(all);
    Thread **lanes = &self.block->threads[(size_t)(self.index - self.lane)];
    for (int lane = 0; lane < 32; lane++)
        if (lane != self.lane && (mask >> lane & 1)) machine.wake(lanes[lane]);
}

struct Shuffle {
    uint32_t value, result;
    int source;
};

static void shuffle(Collective &all) {
    for (int lane = 0; lane < 32; lane++) {
        if (!(all.mask >> lane & 1)) continue;
        auto *mine = (Shuffle *)all.lane[lane];
        if (!(all.mask >> mine->source & 1)) machine.fail(format("shfl.sync: lane %d reads lane %d, which mask %08x leaves out", lane, mine->source, all.mask));
        mine->result = ((Shuffle *)all.lane[mine->source])->value;
    }
}

struct Vote {
    bool condition;
    uint32_t result;
};

static void vote(Collective &all) {
    uint32_t ballot = 0;

    for (int lane = 0; lane < 32; lane++)
        if (all.mask >> lane & 1) ballot |= (uint32_t)((Vote *)all.lane[lane])->condition << lane;
    for (int lane = 0; lane < 32; lane++)
        if (all.mask >> lane & 1) ((Vote *)all.lane[lane])->result = ballot;
}

// The only one that orders memory among the lanes.
static void order(Collective &all) {
    static Clock joined; // keeps its memory

    joined.assign(machine.current->clock);
    for (void *thread : all.lane)
        if (thread) joined.join(((Thread *)thread)->clock);
    for (void *thread : all.lane)
        if (thread) {
            Thread &lane = *(Thread *)thread;
            lane.clock.join_after_arrival(joined, lane.now());
            lane.step();
        }
}

struct Fragments {
    uint32_t *d;
    unsigned char row[16];
};

static void deal_rows(Collective &all, bool transposed) {
    for (int lane = 0; lane < 32; lane++) {
        auto *mine = (Fragments *)all.lane[lane];
        for (int matrix = 0; matrix < 4; matrix++) {
            auto row = [&](int r) { return ((Fragments *)all.lane[8 * matrix + r])->row; };
            if (!transposed) {
                memcpy(&mine->d[matrix], row(lane / 4) + lane % 4 * 4, 4);
            } else {
                uint16_t pair[2];
                for (int i = 0; i < 2; i++) memcpy(&pair[i], row(lane % 4 * 2 + i) + lane / 4 * 2, 2);
                memcpy(&mine->d[matrix], pair, 4);
            }
        }
    }
}

// What stmatrix gives each lane to write: row lane % 8 of matrix lane / 8, four bytes each of the lanes that hold them.
static void collect_rows(Collective &all) {
    for (int lane = 0; lane < 32; lane++)
        for (int part = 0; part < 4; part++)
            memcpy(((Fragments *)all.lane[lane])->row + 4 * part, &((Fragments *)all.lane[lane % 8 * 4 + part])->d[lane / 8], 4);
}

struct Mma {
    Element type;
    float *d;
    const uint32_t *a;
    uint32_t b[2];
};

template <Element type> static double decode(uint32_t bits, int half) {
    if (type == Element::tf32) return decode_tf32(bits);
    return type == Element::bf16 ? decode_bf16((uint16_t)(bits >> 16 * half)) : decode_f16((uint16_t)(bits >> 16 * half));
}

// The registers of PTX's figures for m16n8k16 and m16n8k8: a lane holds rows lane / 4 (+ 8) and the columns at lane % 4 (+ half of K).
template <Element type> static void multiply(Collective &all) {
    const int each = type == Element::tf32 ? 1 : 2, k_count = 8 * each;
    double a[16][16];
    Doubles b[16], d[16];
    uint64_t rows = 0; // that are not all zero

    for (int lane = 0; lane < 32; lane++) {
        auto *mine = (Mma *)all.lane[lane];
        const int g = lane / 4, q = lane % 4;
        if (mine->type != type) machine.fail("mma.sync: lanes execute different types");
        for (int i = 0; i < 4; i++)
            for (int h = 0; h < each; h++) a[g + i % 2 * 8][q * each + h + i / 2 * 4 * each] = decode<type>(mine->a[i], h);
        rows |= (uint64_t)((mine->a[0] | mine->a[2]) != 0) << g | (uint64_t)((mine->a[1] | mine->a[3]) != 0) << (g + 8);
        for (int i = 0; i < 2; i++)
            for (int h = 0; h < each; h++) b[q * each + h + i * 4 * each][g] = decode<type>(mine->b[i], h);
        for (int i = 0; i < 4; i++) d[g + i / 2 * 8][q * 2 + i % 2] = mine->d[i];
    }
    add_products(d, is_finite(b, k_count) ? rows : 0xffff, a[0], 16, 1, b, 1, k_count);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) ((Mma *)all.lane[lane])->d[i] = truncate_to_float(d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
}

} // namespace host

using namespace host;

FLP_HOST_API uint32_t flp_host_shuffle(uint32_t mask, uint32_t value, int source) {
    FLP_HOST_ENTER();
    Shuffle mine = {value, 0, source};
    collect("shfl.sync", mask, &mine, shuffle);
    return mine.result;
}

FLP_HOST_API uint32_t flp_host_ballot(uint32_t mask, bool condition) {
    FLP_HOST_ENTER();
    Vote mine = {condition, 0};
    collect("vote.sync", mask, &mine, vote);
    return mine.result;
}

FLP_HOST_API void flp_host_warp_barrier(uint32_t mask) {
    FLP_HOST_ENTER();
    collect("bar.warp.sync", mask, machine.current, order);
}

FLP_HOST_API void flp_host_ldmatrix(uint32_t *d, uint32_t address, bool transposed) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    Fragments mine = {d, {}};

    if (address % 16 != 0) machine.fail(format("ldmatrix: row address %u, wanted a multiple of 16", address));
    read_shared(self, *self.block, address, 16, "ldmatrix");
    memcpy(mine.row, self.block->shared.at(address), 16);
    if (transposed) collect("ldmatrix.trans", ~0u, &mine, [](Collective &all) { deal_rows(all, true); });
    else collect("ldmatrix", ~0u, &mine, [](Collective &all) { deal_rows(all, false); });
}

FLP_HOST_API void flp_host_stmatrix(uint32_t address, uint32_t *d) {
    FLP_HOST_ENTER();
    Thread &self = *machine.current;
    Fragments mine = {d, {}};

    if (address % 16 != 0) machine.fail(format("stmatrix: row address %u, wanted a multiple of 16", address));
    collect("stmatrix", ~0u, &mine, collect_rows);
    write_shared(self, *self.block, address, 16, "stmatrix");
    memcpy(self.block->shared.at(address), mine.row, 16);
}

FLP_HOST_API void flp_host_mma(int type, float *d, const uint32_t *a, uint32_t b0, uint32_t b1) {
    FLP_HOST_ENTER();
    Mma mine = {(Element)type, d, a, {b0, b1}};
    collect("mma.sync", ~0u, &mine, type == 0 ? multiply<Element::bf16> : type == 1 ? multiply<Element::f16> : multiply<Element::tf32>);
}
