// The dynamic tile scheduler: blocks take tickets for units of one tile from an atomic counter. As soon as the producer has issued all loads of a unit, it
// takes the ticket for the block's next one.
//
// Why: multiprocessors do not get equal shares of the memory bandwidth (of an H200's 132, a group of 24 gets a third more than the others). With equal shares
// of the tiles, some would have none left while others still read their last ones. A unit's bits do not depend on the block that computes it.
//
// The counter is the low word of params.ticket; the high word is the number of the launch that uses it. It need not be initialised before the launch: block 0
// sets it when it begins. A block that finds another launch's number gets no tickets; block 0 itself takes tickets until there are none left, so no unit is
// lost.
//
// The producer hands a unit to the block's other warpgroups through unit[b], with two buffers b. told[b]: the producer has written it. read[b]: all threads
// of the other warpgroups have read it. Each thread arrives for itself, because race checkers require that.
// Config: consumer_groups, cluster, turns, splits_operands
template <class Config> struct Tickets {
    static constexpr int readers = (Config::consumer_groups + Config::splits_operands) * 128;
    u64 told[2], read[2];
    int unit[2]; // index of a small unit (schedule.cuh); -1: there are no more

    // Called by one thread, before the block's first barrier.
    __device__ __forceinline__ void init(const LinearLogpParams &params) {
        for (int b = 0; b < 2; b++) {
            mbarrier_init(shared_address(&told[b]), 1);
            mbarrier_init(shared_address(&read[b]), readers);
        }
        mbarrier_init_fence();
        int first = params.split.big > 0 ? 0 : gridDim.x; // without big splits each block begins with a small unit of its own
        if (blockIdx.x == 0) atomicExch(params.ticket, (u64)launch_number() << 32 | (u32)first);
    }

    // Takes a ticket: the index of a unit, below `units`; -1: there are none left.
    __device__ __forceinline__ static int take(const LinearLogpParams &params, int units) {
        u64 ticket = atomicAdd(params.ticket, 1ull);
        return (u32)(ticket >> 32) == launch_number() && (u32)ticket < (u32)units ? (int)(u32)ticket : -1;
    }

    // The block's ticket number `turn`. Called by the producer's thread, which takes it, and by all threads of the other warpgroups, which wait for it.
    __device__ __forceinline__ int next(const LinearLogpParams &params, int units, int turn) {
        int b = turn % 2, phase = turn / 2 % 2, next;
        if (threadIdx.x / 128 == Config::consumer_groups) {
            next = take(params, units);
            mbarrier_wait(shared_address(&read[b]), phase ^ 1);
            unit[b] = next;
            mbarrier_arrive(shared_address(&told[b]));
        } else {
            mbarrier_wait(shared_address(&told[b]), phase);
            next = unit[b];
            mbarrier_arrive(shared_address(&read[b]));
        }
        return next;
    }
};

// The walk: first the units that the block has without asking (Schedule::next_own), then those for which it takes tickets.
template <class Config> struct TicketedSchedule {
    static constexpr bool units_are_tiles = false;
    static_assert(Config::cluster == 1 && Config::turns == 1, "a producer for each walk");
    Schedule<Config> schedule;
    Tickets<Config> &tickets;
    int turn = 0;

    __device__ __forceinline__ TicketedSchedule(const LinearLogpParams &params, Tickets<Config> &tickets) : schedule(params), tickets(tickets) {}

    __device__ __forceinline__ bool next(Unit &unit) {
        if (schedule.next_own(unit)) return true;
        int units = schedule.small_units();
        if (units == 0) return false;
        int index = tickets.next(schedule.params, units, turn++);
        if (index < 0) return false;
        schedule.locate_small(index, unit);
        return true;
    }
};
