// Prefetch of a warp's next segment, of a row at any address: TMA copies it to shared memory while the warp works on the current one. From there each lane
// loads its vectors, at whatever element they begin.
// Config: those of logits_segment
template <class Config> struct NextSegment {
    using Slot = SegmentSlot<Config>;
    using Element = typename Config::element;
    template <int warps> struct Storage {
        Slot slots[warps];
        u64 full[warps];
    };
    static constexpr bool is_apart = true;
    Slot &slot;
    u32 full;
    int parity = 0;

    // To be followed by a block barrier.
    template <int warps> __device__ __forceinline__ explicit NextSegment(Storage<warps> &storage)
        : slot(storage.slots[warp_index()]), full(shared_address(&storage.full[warp_index()])) {
        slot.clear();
        if (lane_index() == 0) mbarrier_init(full, 1);
        mbarrier_init_fence();
    }

    __device__ __forceinline__ void ask(Segment<Config> &, const Element *logits, int index, int vocab) {
        if (lane_index() == 0) slot.ask({logits, index, vocab}, full);
    }

    __device__ __forceinline__ void take(Segment<Config> &segment, const Element *logits, int index, int vocab) {
        typename Slot::Places at(logits, index, vocab);
        if (at.has_ends()) {
            int place = slot.end_place(at);
            Element end = {};
            if (place >= 0) end = at.from[place]; // loaded together with the copy, it would cost 3 %
            slot.put_end(at, place, end);
        }
        mbarrier_wait(full, parity);
        parity ^= 1;
        if (at.has_ends()) warp_barrier();
        segment.left = min(at.high - at.before, Segment<Config>::columns);
        slot.take(segment.data, at, 0);
        warp_barrier(); // all lanes have read: the next segment may come
        segment.cut_behind();
    }
};
