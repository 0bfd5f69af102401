// Units of one tile that go to whoever is free: as soon as all loads of a unit have been asked for, the block's producer takes a ticket for the next.
// Multiprocessors do not get equal shares of the memory's bandwidth (of an H200's 132, a group of 24 gets a third more than the others), so equal shares of
// the tiles would leave some without any while the last ones are read. A unit's bits do not depend on who computes it.
//
// params.ticket counts, behind the launch's own number. It need not hold anything before the launch: block 0 sets it as it begins, and whoever finds another
// launch's number takes no tickets. Block 0 takes them until there are none.
//
// told[b]: the producer has said which unit is next. read[b]: all of the block's other warpgroups know. Each thread arrives for itself, as race checkers want
// it.
// Config: stages, consumer_groups, block_rows, cluster, turns, is_packed, splits_operands
template <class Config> struct Tickets {
    static constexpr int readers = (Config::consumer_groups + Config::splits_operands) * 128;
    u64 told[2], read[2];
    int unit[2]; // -1: there are no more

    // One thread, before the block's first barrier.
    __device__ __forceinline__ void init(const LinearLogpParams &params) {
        for (int b = 0; b < 2; b++) {
            mbarrier_init(shared_address(&told[b]), 1);
            mbarrier_init(shared_address(&read[b]), readers);
        }
        mbarrier_init_fence();
        int first = params.split.big > 0 ? 0 : gridDim.x; // else each block has one of its own
        if (blockIdx.x == 0) atomicExch(params.ticket, (u64)launch_number() << 32 | (u32)first);
    }

    // Of so many units; -1 where there is none left.
    __device__ __forceinline__ static int take(const LinearLogpParams &params, int units) {
        u64 ticket = atomicAdd(params.ticket, 1ull);
        return (u32)(ticket >> 32) == launch_number() && (u32)ticket < (u32)units ? (int)(u32)ticket : -1;
    }

    // The producer's thread, which takes a ticket, or all of the others: the turn-th unit.
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
