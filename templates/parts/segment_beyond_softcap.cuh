// A segment with logits beyond the softcap's polynomial (softcap.cuh), in a thread's local memory. Few segments have any, and there a loop over the logits
// need not be unrolled, as it must be over registers.
// Config: those of logits_segment
template <class Config> struct SegmentInMemory {
    using Segment = Segment<Config>;
    using Element = typename Config::element;
    static constexpr int elements = Segment::elements, vectors = Segment::vectors;
    alignas(16) float words[4 * vectors];

    // The largest magnitude of a lane's logits. A NaN among other logits may be passed over.
    __device__ __forceinline__ static float largest_magnitude(const Vector (&data)[vectors]) {
        u32 of_vector[vectors];
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            const u32(&words)[4] = data[j].words;
            of_vector[j] = larger_magnitudes<Element>(larger_magnitudes<Element>(words[0], words[1]), larger_magnitudes<Element>(words[2], words[3]));
        }
        Vector largest = {};
#pragma unroll
        for (int j = 0; j < vectors; j++) largest.words[0] = larger_magnitudes<Element>(largest.words[0], of_vector[j]);
        float z[elements], magnitude;
        widen<Element>(largest, z);
        magnitude = fabsf(z[0]);
        return sizeof(Element) == 2 ? fmaxf(magnitude, fabsf(z[1])) : magnitude;
    }

    __device__ __forceinline__ void lay_down(const Segment &segment) {
#pragma unroll
        for (int j = 0; j < vectors; j++) put(j, segment.data[j]);
    }
    __device__ __forceinline__ void take_up(Segment &segment) const {
#pragma unroll
        for (int j = 0; j < vectors; j++) segment.data[j] = at(j);
    }

    __device__ __forceinline__ void put(int j, const Vector &vector) {
        store_local(&words[4 * j], __uint_as_float(vector.words[0]), __uint_as_float(vector.words[1]), __uint_as_float(vector.words[2]),
                    __uint_as_float(vector.words[3]));
    }
    __device__ __forceinline__ Vector at(int j) const {
        float x, y, z, w;
        load_local(&words[4 * j], x, y, z, w);
        return {{__float_as_uint(x), __float_as_uint(y), __float_as_uint(z), __float_as_uint(w)}};
    }

    // Calls visit(z, column) for each of this lane's elements in the segment's first `left` columns: the logit before the softcap, and its column in the
    // segment.
    template <class Visit> __device__ __forceinline__ void visit(int left, Visit visit) const {
#pragma unroll 1
        for (int j = 0; j < vectors; j++) {
            float z[elements];
            widen<Element>(at(j), z);
#pragma unroll
            for (int i = 0; i < elements; i++)
                if (Segment::column(j) + i < left) visit(z[i], Segment::column(j) + i);
        }
    }

    // Replaces each of the lane's logits z by change(z).
    template <class Change> __device__ __forceinline__ void change(Change change) {
#pragma unroll 1
        for (int j = 0; j < vectors; j++) {
            Vector vector = at(j);
            change_elements<Element>(vector, change);
            put(j, vector);
        }
    }

    // The segment's sums, with its largest logit as origin and without the logit in column `place`. Each vector's terms are summed up separately: if all of a
    // lane's 64 terms went into one sum, many small terms beside a large one would all be rounded in the same direction.
    __device__ __forceinline__ void sum_up(int left, int place, const LogitsScale &scale, LogitsSums &sums) const {
        float largest = -infinity;
        visit(left, [&](float z, int column) {
            if (column != place) largest = fmaxf(largest, z);
        });
        sums.origin = soften<Config>(warp_largest(largest), scale);
        sums.sum = sums.moment = 0;
#pragma unroll 1
        for (int j = 0; j < vectors; j++) {
            float z[elements], sum = 0, moment = 0;
            widen<Element>(at(j), z);
#pragma unroll
            for (int i = 0; i < elements; i++) {
                int column = Segment::column(j) + i;
                if (column >= left) continue;
                float d = distance(soften<Config>(z[i], scale), sums.origin, scale), power = column == place ? 0 : exp2_approximate(d);
                sum += power;
                if constexpr (Config::has_entropy) moment = fmaf(power, fmaxf(d, lowest_power), moment);
            }
            sums.sum += sum;
            sums.moment += moment;
        }
        Segment::add_lanes(sums);
    }
};
