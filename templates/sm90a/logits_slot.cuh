// A place in shared memory for a segment of a row at any address, which the copy engine brings there.
//
// The engine moves whole vectors of the memory. Of those that the row's ends share with other rows, lanes bring the row's elements, one each. It is fastest
// where they keep their places within a line of 128 bytes (bench/results/NOTES.md), so a segment begins in its slot as far behind a line's start as there.
// Config: as for a segment
template <class Config> struct SegmentSlot {
    using Segment = Segment<Config>;
    using Element = typename Config::element;
    static constexpr int elements = Segment::elements;
    static constexpr int line = 128 / sizeof(Vector); // vectors of one
    // Vectors behind as many as a segment has, of rows at any address: its last one lies across two, and so may the last one of its gradients.
    static constexpr int more = Config::vector_bytes == 16 ? 0 : Config::rewrites ? 2 : 1;
    Vector vectors[Segment::vectors * 32 + line]; // as many whole lines

    // Where a segment lies in the slot, in elements from its first vector on: from `low` to `high` its row does, from `first` to `last` the row's whole
    // vectors of the memory.
    struct Places {
        const Element *from; // the first vector
        int before, low, high, first, last;
        __device__ __forceinline__ Places(const Element *logits, int index, int vocab) {
            const Element *segment = logits + (i64)index * Segment::columns;
            before = Config::vector_bytes == 16 ? 0 : (int)((u64)segment % 16) / (int)sizeof(Element);
            from = segment - before;
            low = index == 0 ? before : 0;
            high = before + vocab - index * Segment::columns;
            first = low > 0 ? elements : 0;
            last = min(high / elements * elements, room());
        }
        __device__ __forceinline__ int vector() const {
            int vector = (int)((u64)from / sizeof(Vector) % line);
            return more > 1 ? min(vector, line - more) : vector;
        }
        __device__ __forceinline__ int room() const { return Segment::columns + (Config::rewrites || before > 0 ? more * elements : 0); }
        __device__ __forceinline__ bool has_ends() const { return first > 0 || last < room(); }
    };

    // By a warp: places beside a row are read, too. Behind it the block meets.
    __device__ __forceinline__ void clear() {
        for (int i = lane_index(); i < (int)(sizeof(vectors) / sizeof(Vector)); i += 32) vectors[i] = Vector{{0, 0, 0, 0}};
        async_proxy_fence();
    }

    __device__ __forceinline__ Element *element(const Places &at, int place) { return (Element *)(vectors + at.vector()) + place; }

    // One lane asks for what lies between the row's ends; its bytes complete on the barrier.
    __device__ __forceinline__ void ask(const Places &at, u32 full) const {
        int bytes = max(at.last - at.first, 0) * (int)sizeof(Element);
        mbarrier_arrive_expect(full, bytes);
        if (bytes > 0) bulk_load(shared_address(vectors + at.vector()) + at.first * (int)sizeof(Element), at.from + at.first, bytes, full);
    }

    // Where this lane's one of the elements that the copy engine leaves out lies, those of the first vector with the first lanes; below 0: it has none.
    __device__ __forceinline__ int end_place(const Places &at) const {
        bool is_head = lane_index() < elements;
        int place = is_head ? lane_index() : at.last + lane_index() - elements, end = min(at.high, is_head ? at.first : at.room());
        return at.has_ends() && lane_index() < 2 * elements && place >= at.low && place < end ? place : -1;
    }

    // Brings it, when nobody reads any more what was there before. Where there are ends, the warp meets behind it.
    __device__ __forceinline__ void put_end(const Places &at, int place, Element end) {
        if (place >= 0) *element(at, place) = end;
        async_proxy_fence();
    }

    // A lane's vectors, from the segment's element `skipped` on: one of the first vector's.
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
