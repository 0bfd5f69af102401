// A slot in shared memory for a segment of a row at any address, which TMA copies there (bulk copies).
//
// TMA copies whole aligned vectors of 16 bytes. Of the vectors that a row's ends share with other rows, lanes copy the row's elements, one each. TMA is
// fastest where vectors keep their place within a line of 128 bytes (bench/results/NOTES.md), so a segment begins in its slot at the same distance from a
// line's start as in memory.
// Config: those of logits_segment
template <class Config> struct SegmentSlot {
    using Segment = Segment<Config>;
    using Element = typename Config::element;
    static constexpr int elements = Segment::elements;
    static constexpr int line = 128 / sizeof(Vector); // vectors of a line
    // For rows at any address, vectors that a slot has in addition to a segment's: the segment's last vector lies across two aligned ones, and so may the
    // last vector of its gradients (rewrites).
    static constexpr int more = Config::vector_bytes == 16 ? 0 : Config::rewrites ? 2 : 1;
    Vector vectors[Segment::vectors * 32 + line]; // one line more, as a segment may begin anywhere in a line

    // Where a segment lies. In elements from its first aligned vector on: its row extends from `low` to `high`, as far as that matters, and the row's whole
    // aligned vectors from `first` to `last`.
    struct Places {
        const Element *from; // the address of the first aligned vector
        int before, low, high, first, last;
        __device__ __forceinline__ Places(const Element *logits, int index, int vocab) {
            const Element *segment = logits + (i64)index * Segment::columns;
            before = Config::vector_bytes == 16 ? 0 : (int)((u64)segment % 16) / (int)sizeof(Element);
            from = segment - before;
            low = index == 0 ? before : 0;
            high = vocab - index * Segment::columns;
            if constexpr (Config::vector_bytes < 16) high = before + min(high, Segment::columns + more * elements); // before + high must not overflow
            first = low > 0 ? elements : 0;
            last = min(high / elements * elements, room());
        }
        // The index in the slot of that vector: its place within a line of memory.
        __device__ __forceinline__ int vector() const {
            int vector = (int)((u64)from / sizeof(Vector) % line);
            return more > 1 ? min(vector, line - more) : vector;
        }
        __device__ __forceinline__ int room() const { return Segment::columns + (Config::rewrites || before > 0 ? more * elements : 0); }
        __device__ __forceinline__ bool has_ends() const { return first > 0 || last < room(); }
    };

    // Called by a warp, and to be followed by a block barrier: sets the slot to 0, since positions outside of a row are read, too.
    __device__ __forceinline__ void clear() {
        for (int i = lane_index(); i < (int)(sizeof(vectors) / sizeof(Vector)); i += 32) vectors[i] = Vector{{0, 0, 0, 0}};
        async_proxy_fence();
    }

    __device__ __forceinline__ Element *element(const Places &at, int place) { return (Element *)(vectors + at.vector()) + place; }

    // Called by one lane: requests the row's whole vectors. Their bytes complete on the mbarrier `full`.
    __device__ __forceinline__ void ask(const Places &at, u32 full) const {
        int bytes = max(at.last - at.first, 0) * (int)sizeof(Element);
        mbarrier_arrive_expect(full, bytes);
        if (bytes > 0) bulk_load(shared_address(vectors + at.vector()) + at.first * (int)sizeof(Element), at.from + at.first, bytes, full);
    }

    // The position of this lane's element among those that TMA leaves out: the first lanes have the first vector's, the next ones the last vector's.
    // Negative: the lane has none.
    __device__ __forceinline__ int end_place(const Places &at) const {
        bool is_head = lane_index() < elements;
        int place = is_head ? lane_index() : at.last + lane_index() - elements, end = min(at.high, is_head ? at.first : at.room());
        return at.has_ends() && lane_index() < 2 * elements && place >= at.low && place < end ? place : -1;
    }

    // Stores that element. The slot's old contents must no longer be read. Where there are ends, to be followed by a warp barrier.
    __device__ __forceinline__ void put_end(const Places &at, int place, Element end) {
        if (place >= 0) *element(at, place) = end;
        async_proxy_fence();
    }

    // Loads a lane's vectors, from the segment's element `skipped` on, which is in its first vector.
    __device__ __forceinline__ void take(Vector (&data)[Segment::vectors], const Places &at, int skipped) const {
        const Vector *from = vectors + at.vector() + lane_index();
        if constexpr (Config::vector_bytes == 16) {
            take_aligned(data, from);
        } else {
            int shift = (at.before + skipped) * (int)sizeof(Element);
            if constexpr (Config::rewrites) {
                from += shift / (int)sizeof(Vector);
                shift %= (int)sizeof(Vector);
            }
            if (shift == 0) take_aligned(data, from);
            else visit_words(shift, [&](auto words) { take_shifted<decltype(words)::count>(data, from, shift % 4 * 8); });
        }
    }

private:
    __device__ __forceinline__ static void take_aligned(Vector (&data)[Segment::vectors], const Vector *from) {
#pragma unroll
        for (int j = 0; j < Segment::vectors; j++) data[j] = from[32 * j];
    }
    template <int word> __device__ __forceinline__ static void take_shifted(Vector (&data)[Segment::vectors], const Vector *from, int bits) {
#pragma unroll
        for (int j = 0; j < Segment::vectors; j++) {
            Vector first = from[32 * j], second = from[32 * j + 1];
            u32 words[8];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = first.words[i];
                words[4 + i] = second.words[i];
            }
            data[j] = vector_within<word>(words, bits);
        }
    }
};
