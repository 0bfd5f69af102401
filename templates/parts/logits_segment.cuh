// A segment of a row of logits, held by one warp: `vectors` times 512 bytes, 16 bytes a lane.
//
// A row is the same segments whatever computes them; each leaves its sums, which are merged in the segments' order. Within a segment the
// order is fixed too, so a row's bits depend on V and the dtype, not on the load's width, the rows beside it or the size of the device.
//
// The row's target has no part in its segment's sums (target_share.cuh says why).
//
// A segment's origin is the largest logit of its first 512 bytes; where the sum then leaves the safe range, or the origin's power is large (or may be
// so behind a larger logit), of all of it.
// Config: element, segment_vectors, vector_bytes, is_staged, rewrites, has_softcap, has_entropy, wants_argmax
constexpr float safe_sum = 1152921504606846976.0f; // 2^60: 2^67 such sums stay finite
constexpr float lowest_power = -200;               // 2^-200 is 0 in fp32: keeps 0 * infinity out of products with powers

template <class Element> constexpr u32 minus_infinity_word = 0xff800000u; // f32
template <> constexpr u32 minus_infinity_word<bf16> = 0xff80ff80u;
template <> constexpr u32 minus_infinity_word<f16> = 0xfc00fc00u;

// Rows at any address, which are read and written in vectors all the same; where they are staged, shared memory has them at any address.
template <class Config> constexpr bool is_shifted = Config::vector_bytes < 16 && !Config::is_staged;

// from: a multiple of 16 bytes.
template <class Config> __device__ __forceinline__ Vector load_logits(const typename Config::element *from) {
    if constexpr (Config::rewrites) return *(const Vector *)from; // gradients may come to lie there
    else return load_once(from);
}

// Each of a vector's, rounded to nearest.
template <class Element, class Change> __device__ __forceinline__ void change_elements(Vector &vector, Change change) {
    float z[vector_elements<Element>];
    widen<Element>(vector, z);
#pragma unroll
    for (float &value : z) value = change(value);
    vector = narrow<Element>(z);
}

// segment_beyond_softcap.cuh, emitted where Config::has_softcap.
template <class Config> struct SegmentInMemory;

template <class Config> struct Segment {
    using Element = typename Config::element;
    static constexpr int elements = vector_elements<Element>, vectors = Config::segment_vectors;
    static constexpr int columns = 32 * elements * vectors;
    Vector data[vectors];
    int left;   // columns up to the vocabulary's end, at most all
    u32 behind; // is_shifted: as shift_vectors wants it
    int shift;  // is_shifted: bytes that the segment begins behind a multiple of 16

    __device__ __forceinline__ static int column(int j) { return (j * 32 + lane_index()) * elements; }

    // Loads from a row that begins at logits. Columns behind the vocabulary are -inf and are not read.
    __device__ __forceinline__ void load(const Element *logits, int index, int vocab) {
        const Element *from = logits + (i64)index * columns;
        int rest = vocab - index * columns;
        left = min(rest, columns);
        if constexpr (is_shifted<Config>) {
            load_aligned(from, index == 0, rest);
            return;
        }
        if (left >= columns) {
            const Element *own = from + column(0);
#pragma unroll
            for (int j = 0; j < vectors; j++) data[j] = load_logits<Config>(own + j * 32 * elements);
            return;
        }
        constexpr u32 none = minus_infinity_word<Element>;
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            data[j] = Vector{{none, none, none, none}};
            if (left - column(j) >= elements) data[j] = load_logits<Config>(from + column(j));
        }
        load_last(from);
    }

    // The last vector of rows that end within one, as few do: it is one lane's, which all lanes then look for, instead of looking at each vector's end.
    __device__ __forceinline__ void load_last(const Element *from) {
        int rest = left % elements, at = left - rest, vector = at / (32 * elements);
        if (rest == 0) return;
        if (at / elements % 32 != lane_index()) vector = -1;
        Vector last = load_some(from + at, vector >= 0 ? rest : 0);
        cut(last, rest);
#pragma unroll
        for (int j = 0; j < vectors; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) data[j].words[i] = j == vector ? last.words[i] : data[j].words[i];
    }

    // The vectors in which the segment lies; of those at a row's ends, the row's elements, and where other warps may write to what lies beside the segment,
    // the segment's. rest: columns of the row from here on.
    __device__ __forceinline__ void load_aligned(const Element *from, bool is_first, int rest) {
        shift = (int)((u64)from % 16);
        int before = shift / (int)sizeof(Element), low = Config::rewrites || is_first ? before : 0, high = before + (Config::rewrites ? left : rest);
        const Element *aligned = from - before;
        if (Config::rewrites ? left == columns : low == 0 && high >= columns + elements) {
#pragma unroll
            for (int j = 0; j < vectors; j++) {
                if (j == 0 && Config::rewrites && column(0) < low) data[0] = load_between(aligned, low, elements);
                else data[j] = load_logits<Config>(aligned + column(j));
            }
            behind =
                Config::rewrites ? load_word_between(aligned + columns, lane_index() % 4, 0, before) : ((const u32 *)(aligned + columns))[lane_index() % 4];
            return;
        }
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            int at = column(j);
            data[j] = at >= low && at + elements <= high ? load_logits<Config>(aligned + at) : load_between(aligned + at, low - at, high - at);
        }
        behind = load_word_between(aligned + columns, lane_index() % 4, 0, high - columns);
    }

    // Once, before the first look at logits that were loaded.
    __device__ __forceinline__ void put_together() {
        if constexpr (is_shifted<Config>) {
            shift_vectors(data, behind, shift);
            cut_behind();
        }
    }

    // Columns behind the vocabulary become -inf.
    __device__ __forceinline__ void cut_behind() {
        if (left >= columns) return;
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            cut(data[j], left - column(j));
#pragma unroll
            for (int i = 0; i < 4; i++) make_opaque(data[j].words[i]); // one vector after the other: conditions for all at once want registers
        }
    }

    // Elements from `valid` on become -inf.
    __device__ __forceinline__ static void cut(Vector &vector, int valid) {
        constexpr u32 cut_word = minus_infinity_word<Element>;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (sizeof(Element) == 4) {
                if (i >= valid) vector.words[i] = cut_word;
            } else {
                if (2 * i >= valid) vector.words[i] = cut_word;
                else if (2 * i + 1 >= valid) vector.words[i] = (vector.words[i] & 0xffffu) | (cut_word & 0xffff0000u);
            }
        }
    }

    // visit(z, index): softened logit and column in the segment, of this lane's elements.
    template <int some = vectors, class Visit> __device__ __forceinline__ void each(const LogitsScale &scale, Visit visit) const {
#pragma unroll
        for (int j = 0; j < some; j++) {
            float z[elements];
            widen<Element>(data[j], z);
#pragma unroll
            for (int i = 0; i < elements; i++) {
                if constexpr (Config::has_softcap) z[i] = softcap_of(scale).of_within(z[i]);
                visit(z[i], j * elements + i);
            }
        }
    }

    // Softened where no logit is beyond the softcap, as in nearly all segments; the others' are softened by segment_beyond_softcap.cuh.
    __device__ __forceinline__ static Softcap<Config> softcap_of(const LogitsScale &scale) { return {scale.softcap, scale.inverse_softcap}; }
    __device__ __forceinline__ bool is_within_softcap(const LogitsScale &scale, SegmentInMemory<Config> &in_memory) const {
        float largest = 0;
        if (left < columns) {
            in_memory.lay_down(*this);
            in_memory.visit(left, [&](float z, int) { largest = fmaxf(largest, fabsf(z)); });
        } else {
            largest = SegmentInMemory<Config>::largest_magnitude(data);
        }
        return !warp_any(!softcap_of(scale).is_within(largest));
    }

    // place: the target's column in the segment, or outside of it. Its logit must not be a term of the sums.
    __device__ __forceinline__ void leave_out(int place) {
        bool is_here = (u32)place < (u32)columns;
        if (is_here) {
            constexpr int bits = 8 * sizeof(Element);
            int vector = place / (32 * elements), word = place % elements * bits / 32; // of all lanes: a branch skips the other vectors
            u32 part = (bits == 32 ? 0xffffffffu : 0xffffu) << place * bits % 32, parts[4];
            if (place / elements % 32 != lane_index()) part = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) parts[i] = i == word ? part : 0;
#pragma unroll
            for (int j = 0; j < vectors; j++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (j == vector) data[j].words[i] = (data[j].words[i] & ~parts[i]) | (minus_infinity_word<Element> & parts[i]);
        }
    }

    template <int some> __device__ __forceinline__ float find_origin(const LogitsScale &scale) const {
        float largest = -infinity;
        each<some>(scale, [&](float z, int) { largest = fmaxf(largest, z); });
        return warp_largest(largest);
    }

    __device__ __forceinline__ void add_powers(const LogitsScale &scale, LogitsSums &sums) const {
        // Without an origin all terms are -inf or NaN: 2^z2 itself is then 0 or NaN, which is what the sum must become.
        float k = sums.origin == -infinity ? 0 : power_of(sums.origin, scale), part[4] = {0, 0, 0, 0}, moment[2] = {0, 0};
        each(scale, [&](float z, int i) {
            float d = distance_from<false>(z, k, scale), power = exp2_approximate(d);
            part[i & 3] += power;
            if constexpr (Config::has_entropy) moment[i & 1] = fmaf(power, fmaxf(d, lowest_power), moment[i & 1]);
        });
        sums.sum = (part[0] + part[1]) + (part[2] + part[3]);
        sums.moment = moment[0] + moment[1];
        add_lanes(sums);
    }

    // The same where the origin's power is large: of the logits as they lie in memory, so that a kernel has the loop over its registers once.
    // place: the target's column in the segment.
    __device__ __forceinline__ void add_large_powers(const Element *from, int place, const LogitsScale &scale, LogitsSums &sums) const {
        sums.sum = sums.moment = 0;
#pragma unroll 1
        for (int first = lane_index(); first < left; first += 4 * 32) {
            float sum = 0, moment = 0;
#pragma unroll
            for (int i = first; i < first + 4 * 32; i += 32) {
                if (i >= left) continue;
                float d = distance_from<true>(soften<Config>(to_float(from[i]), scale), sums.origin, scale), power = exp2_approximate(d);
                if (i == place) power = 0;
                sum += power;
                if constexpr (Config::has_entropy) moment = fmaf(power, fmaxf(d, lowest_power), moment);
            }
            sums.sum += sum;
            sums.moment += moment;
        }
        add_lanes(sums);
    }

    __device__ __forceinline__ static void add_lanes(LogitsSums &sums) {
#pragma unroll
        for (int m = 16; m > 0; m /= 2) {
            sums.sum += shuffle_xor(sums.sum, m);
            if constexpr (Config::has_entropy) sums.moment += shuffle_xor(sums.moment, m);
        }
    }

    // The first of the largest logits before the softcap, with or without the target; NaN never wins. first: the segment's first column in the row.
    __device__ __forceinline__ void find_best(int first, LogitsSums &sums) const {
        float of_vector[vectors], own = -infinity;
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            const u32(&words)[4] = data[j].words;
            u32 word = larger_elements<Element>(larger_elements<Element>(words[0], words[1]), larger_elements<Element>(words[2], words[3]));
            of_vector[j] = sizeof(Element) == 4 ? __uint_as_float(word) : fmaxf(element_of(word, 0), element_of(word, 1));
            own = fmaxf(own, of_vector[j]);
        }
        sums.best = warp_largest(own);
        int vector = vectors, place = 0; // the first one that has it; none
        Vector found = data[0];
#pragma unroll
        for (int j = vectors - 1; j >= 0; j--) {
            if (of_vector[j] != sums.best) continue;
            vector = j;
            found = data[j];
        }
#pragma unroll
        for (int i = elements - 1; i >= 0; i--)
            if (element_of(found.words[i * 4 / elements], i % (elements / 4)) == sums.best) place = i;
        sums.best_index = warp_smallest(vector == vectors ? 0x7fffffff : first + column(vector) + place);
    }

    // Of the elements in a word, one or two.
    __device__ __forceinline__ static float element_of(u32 word, int index) {
        if constexpr (sizeof(Element) == 4) return __uint_as_float(word);
        else return to_float(Element{(u16)(word >> 16 * index)});
    }

    // Between two walks over the logits: otherwise the first one's floats, twice as many as the words, would stay for the second.
    __device__ __forceinline__ void make_words_opaque() {
#pragma unroll
        for (int j = 0; j < vectors; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) make_opaque(data[j].words[i]);
    }

    // In all lanes. logits: where the row begins; index: which of its segments this is; target: the row's, or negative. Afterwards the target's logit
    // may be gone.
    __device__ __forceinline__ LogitsSums statistics(const LogitsScale &scale, const Element *logits, int index, int target) {
        LogitsSums sums;
        int first = index * columns;
        put_together();
        bool is_beyond = false;
        if constexpr (Config::has_softcap) {
            SegmentInMemory<Config> in_memory;
            is_beyond = rarely(!is_within_softcap(scale, in_memory));
            if (is_beyond) {
                in_memory.lay_down(*this);
                in_memory.sum_up(left, target - first, scale, sums);
            }
        }
        if (!is_beyond) {
            leave_out(target - first);
            sums.origin = find_origin<1>(scale);
            bool is_exact = false;
            do {
                make_words_opaque();
                if (is_exact) sums.origin = find_origin<vectors>(scale);
                make_words_opaque();
                add_powers(scale, sums);
                if (is_exact) break;
                is_exact = !(sums.sum < safe_sum) || !(fabsf(power_of(sums.origin, scale)) < large_power / 2);
            } while (is_exact);
            if (rarely(is_exact) && sums.origin != -infinity && is_large(power_of(sums.origin, scale)))
                add_large_powers(logits + first, target - first, scale, sums);
        }
        make_words_opaque();
        if constexpr (Config::wants_argmax) find_best(first, sums);
        return sums;
    }
};
