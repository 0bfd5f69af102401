// A warp's next segment, of a row at any address: the copy engine brings it to shared memory while the warp is at the one before, and from there each lane
// takes its vectors wherever they begin.
//
// The engine moves whole vectors of the memory. Of those that the row's ends share with other rows, lanes bring the row's elements, one each.
// Config: as for a segment
template <class Config> struct NextSegment {
    using Segment = Segment<Config>;
    using Element = typename Config::element;
    static constexpr int elements = Segment::elements;
    struct Slot {
        Vector vectors[Segment::vectors * 32 + 1];
    };
    template <int warps> struct Storage {
        Slot slots[warps];
        u64 full[warps];
    };
    static constexpr bool is_apart = true;
    Vector *slot;
    u32 full;
    int parity = 0, left, shift; // shift: bytes that the segment begins behind the slot's beginning
    int place;                   // in the slot, of the element that this lane brings; -1: none
    Element own;

    // Behind it the block meets.
    template <int warps> __device__ __forceinline__ explicit NextSegment(Storage<warps> &storage)
        : slot(storage.slots[warp_index()].vectors), full(shared_address(&storage.full[warp_index()])) {
        for (int i = lane_index(); i < (int)(sizeof(Slot) / sizeof(Vector)); i += 32) slot[i] = Vector{{0, 0, 0, 0}}; // places beside a row are read, too
        async_proxy_fence();
        if (lane_index() == 0) mbarrier_init(full, 1);
        mbarrier_init_fence();
    }

    __device__ __forceinline__ void ask(Segment &, const Element *logits, int index, int vocab) {
        const Element *from = logits + (i64)index * Segment::columns;
        int rest = vocab - index * Segment::columns;
        shift = (int)((u64)from % 16);
        left = min(rest, Segment::columns);
        // Places in the slot: from `low` to `high` the row lies; from `first` to `last` whole vectors do.
        int before = shift / (int)sizeof(Element), low = index == 0 ? before : 0, high = before + rest, room = Segment::columns + (before > 0 ? elements : 0);
        int first = low > 0 ? elements : 0, last = min(high / elements * elements, room), bytes = max(last - first, 0) * (int)sizeof(Element);
        from -= before;
        if (lane_index() == 0) {
            mbarrier_arrive_expect(full, bytes);
            if (bytes > 0) bulk_load(shared_address(slot) + first * (int)sizeof(Element), from + first, bytes, full);
        }
        place = -1;
        if (first == 0 && last == room) return;
        int at = lane_index() < elements ? lane_index() : last + lane_index() - elements, end = lane_index() < elements ? first : room;
        if (at < low || at >= min(high, end) || lane_index() >= 2 * elements) return;
        place = at;
        own = from[at];
    }

    __device__ __forceinline__ void take(Segment &segment) {
        mbarrier_wait(full, parity);
        parity ^= 1;
        if (warp_any(place >= 0)) {
            if (place >= 0) ((Element *)slot)[place] = own;
            async_proxy_fence();
            warp_barrier();
        }
        segment.left = left;
        const Vector *from = slot + lane_index();
        if (shift == 0) {
#pragma unroll
            for (int j = 0; j < Segment::vectors; j++) segment.data[j] = from[32 * j];
        } else {
            visit_words(shift, [&](auto words) { take_shifted<decltype(words)::count>(segment, from); });
        }
        warp_barrier(); // all lanes have read: the next segment may come
        segment.cut_behind();
    }

private:
    template <int word> __device__ __forceinline__ void take_shifted(Segment &segment, const Vector *from) const {
#pragma unroll
        for (int j = 0; j < Segment::vectors; j++) {
            Vector first = from[32 * j], second = from[32 * j + 1];
            u32 words[8];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = first.words[i];
                words[4 + i] = second.words[i];
            }
            segment.data[j] = vector_within<word>(words, shift % 4 * 8);
        }
    }
};
