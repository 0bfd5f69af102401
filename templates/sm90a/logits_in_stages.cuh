// A warp's next segment, of a row at any address: the copy engine brings it to shared memory while the warp is at the one before, and from there each lane
// takes its vectors wherever they begin.
//
// The engine moves whole vectors of the memory. Of those that the row's ends share with other rows, lanes bring the row's elements, one each. It is fastest
// where they keep their places within a line of 128 bytes (bench/results/NOTES.md), so a segment begins in its slot as far behind a line's start as there.
// Config: as for a segment
template <class Config> struct NextSegment {
    using Segment = Segment<Config>;
    using Element = typename Config::element;
    static constexpr int elements = Segment::elements;
    static constexpr int line = 128 / sizeof(Vector); // vectors of one
    struct Slot {
        Vector vectors[Segment::vectors * 32 + line]; // as many whole lines
    };
    template <int warps> struct Storage {
        Slot slots[warps];
        u64 full[warps];
    };
    static constexpr bool is_apart = true;
    Vector *slot;
    u32 full;
    int parity = 0;

    // Where a segment lies in the slot, in elements from its first vector on: from `low` to `high` its row does, from `first` to `last` the row's whole
    // vectors of the memory.
    struct Places {
        const Element *from; // the first vector
        int before, low, high, first, last;
        __device__ __forceinline__ Places(const Element *logits, int index, int vocab) {
            const Element *segment = logits + (i64)index * Segment::columns;
            before = (int)((u64)segment % 16) / (int)sizeof(Element);
            from = segment - before;
            low = index == 0 ? before : 0;
            high = before + vocab - index * Segment::columns;
            first = low > 0 ? elements : 0;
            last = min(high / elements * elements, room());
        }
        __device__ __forceinline__ Vector *within(Vector *slot) const { return slot + (u64)from / sizeof(Vector) % line; }
        __device__ __forceinline__ int room() const { return Segment::columns + (before > 0 ? elements : 0); }
    };

    // Behind it the block meets.
    template <int warps> __device__ __forceinline__ explicit NextSegment(Storage<warps> &storage)
        : slot(storage.slots[warp_index()].vectors), full(shared_address(&storage.full[warp_index()])) {
        for (int i = lane_index(); i < (int)(sizeof(Slot) / sizeof(Vector)); i += 32) slot[i] = Vector{{0, 0, 0, 0}}; // places beside a row are read, too
        async_proxy_fence();
        if (lane_index() == 0) mbarrier_init(full, 1);
        mbarrier_init_fence();
    }

    __device__ __forceinline__ void ask(Segment &, const Element *logits, int index, int vocab) {
        if (lane_index() != 0) return;
        Places at(logits, index, vocab);
        int bytes = max(at.last - at.first, 0) * (int)sizeof(Element);
        mbarrier_arrive_expect(full, bytes);
        if (bytes > 0) bulk_load(shared_address(at.within(slot)) + at.first * (int)sizeof(Element), at.from + at.first, bytes, full);
    }

    __device__ __forceinline__ void take(Segment &segment, const Element *logits, int index, int vocab) {
        Places at(logits, index, vocab);
        bool has_ends = at.first > 0 || at.last < at.room();
        if (has_ends) bring_ends(at);
        mbarrier_wait(full, parity);
        parity ^= 1;
        if (has_ends) warp_barrier();
        segment.left = min(at.high - at.before, Segment::columns);
        const Vector *from = at.within(slot) + lane_index();
        int shift = at.before * (int)sizeof(Element), bits = shift % 4 * 8;
        if (Config::vector_bytes == 16 || shift == 0) {
#pragma unroll
            for (int j = 0; j < Segment::vectors; j++) segment.data[j] = from[32 * j];
        } else if constexpr (Config::vector_bytes < 16) {
            visit_words(shift, [&](auto words) { take_shifted<decltype(words)::count>(segment, from, bits); });
        }
        warp_barrier(); // all lanes have read: the next segment may come
        segment.cut_behind();
    }

private:
    // The vectors that the copy engine leaves out: their places in the slot are nobody else's.
    __device__ __forceinline__ void bring_ends(const Places &at) const {
        bool is_head = lane_index() < elements;
        int place = is_head ? lane_index() : at.last + lane_index() - elements, end = min(at.high, is_head ? at.first : at.room());
        if (place >= at.low && place < end && lane_index() < 2 * elements) ((Element *)at.within(slot))[place] = at.from[place];
        async_proxy_fence();
    }

    template <int word> __device__ __forceinline__ static void take_shifted(Segment &segment, const Vector *from, int bits) {
#pragma unroll
        for (int j = 0; j < Segment::vectors; j++) {
            Vector first = from[32 * j], second = from[32 * j + 1];
            u32 words[8];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = first.words[i];
                words[4 + i] = second.words[i];
            }
            segment.data[j] = vector_within<word>(words, bits);
        }
    }
};
