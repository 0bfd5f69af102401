// A segment of a row of logits, held in one warp's registers: `vectors` times 512 bytes, 16 bytes of each in a lane.
//
// Every kernel cuts a row into the same segments, computes the sums of each, and merges these in the segments' order. Within a segment the order of the
// additions is fixed too. So a row's bits depend on V and the dtype, not on the width of the loads, the other rows or the size of the device.
//
// The row's target has no part in its segment's sums (target_share.cuh says why).
//
// A segment's origin, relative to which its powers of two are computed (logits_row.cuh), is the largest logit of its first 512 bytes. Where the sum then
// leaves the safe range, or where the power of the origin is large or of a larger logit might be, the sums are computed again with the segment's largest
// logit as origin. The entropy is the difference of two numbers as large as the log2 of the sum, so with it the range is smaller.
// Config: element, segment_vectors, vector_bytes, is_staged, rewrites, has_softcap, has_entropy, wants_argmax
constexpr float safe_sum = 1152921504606846976.0f; // 2^60: 2^67 such sums stay finite
constexpr float lowest_power = -200;               // 2^-200 is 0 in fp32: keeps 0 * infinity out of products with powers

template <class Element> constexpr u32 minus_infinity_word = 0xff800000u; // f32
template <> constexpr u32 minus_infinity_word<bf16> = 0xff80ff80u;
template <> constexpr u32 minus_infinity_word<f16> = 0xfc00fc00u;

// Rows may begin at any element, and are still read and written in aligned vectors, which are shifted in registers. Rows staged in shared memory are not:
// there a lane reads at any address.
template <class Config> constexpr bool is_shifted = Config::vector_bytes < 16 && !Config::is_staged;

// from: a multiple of 16 bytes.
template <class Config> __device__ __forceinline__ Vector load_logits(const typename Config::element *from) {
    if constexpr (Config::rewrites) return *(const Vector *)from; // gradients may overwrite the logits, so no load through the read-only path
    else return load_once(from);
}

// Replaces each element z of the vector by change(z), rounded to nearest.
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
    static constexpr float largest_sum = Config::has_entropy ? 2.0f * columns : safe_sum;
    Vector data[vectors];
    int left;   // columns up to the vocabulary's end, at most all
    u32 behind; // is_shifted: the parameter of shift_vectors
    int shift;  // is_shifted: the segment's address modulo 16, in bytes

    __device__ __forceinline__ static int column(int j) { return (j * 32 + lane_index()) * elements; }

    // Loads segment `index` of the row that begins at `logits`. Columns past the vocabulary become -inf and are not read.
    __device__ __forceinline__ void load(const Element *logits, int index, int vocab) {
        const Element *from = logits + (i64)index * columns;
        int rest = vocab - index * columns;
        left = min(rest, columns);
        if constexpr (is_shifted<Config>) {
            load_aligned(from, index == 0, min(rest, columns + elements)); // before + rest must not overflow
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

    // Loads the last vector of a row that ends within a vector, as few rows do. It belongs to one lane: one comparison with the lane's index replaces a
    // comparison with the row's end in each vector.
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

    // Loads the aligned vectors in which the segment lies. Of a vector at an end of the row only the row's elements are read; where other warps may be
    // overwriting the neighbouring segments (rewrites), only the segment's. rest: columns of the row from here on, as far as they matter.
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

    // To be called once, between load() and the first use of the logits: shifts aligned vectors into the segment's.
    __device__ __forceinline__ void put_together() {
        if constexpr (is_shifted<Config>) {
            shift_vectors(data, behind, shift);
            cut_behind();
        }
    }

    // Sets columns past the vocabulary to -inf.
    __device__ __forceinline__ void cut_behind() {
        if (left >= columns) return;
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            cut(data[j], left - column(j));
#pragma unroll
            for (int i = 0; i < 4; i++) make_opaque(data[j].words[i]); // one vector after the other: conditions for all at once would take registers
        }
    }

    // Sets the vector's elements from `valid` on to -inf.
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

    // Calls visit(z, i) for each of this lane's logits in the first `some` vectors: z after the softcap, i its index in the lane.
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

    // each() applies this to segments in which no logit is beyond the softcap's polynomial (softcap.cuh), as nearly all are; the others go through
    // segment_beyond_softcap.cuh.
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

    // Sets the target's logit to -inf, so that it is no term of the sums. place: the target's column relative to the segment, which may be outside of it.
    __device__ __forceinline__ void leave_out(int place) {
        bool is_here = (u32)place < (u32)columns;
        if (is_here) {
            constexpr int bits = 8 * sizeof(Element);
            int vector = place / (32 * elements), word = place % elements * bits / 32; // the same in all lanes: a branch skips the other vectors
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
        // Without an origin all logits are -inf or NaN: with k = 0 each term 2^z2 is then 0 or NaN, as the sum must be.
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

    // The same where the origin's power is large, from the logits in memory, so that a kernel contains only one unrolled loop over its registers. place: the
    // target's column relative to the segment.
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

    // Finds the largest logit before the softcap, and of equal ones the first column; NaN never wins. leave_out() may have removed the target before. first:
    // the segment's first column in the row.
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
        int vector = vectors, place = 0; // the lane's first vector that has the largest logit; `vectors`: none has
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

    // Element `index` of the one or two in a word.
    __device__ __forceinline__ static float element_of(u32 word, int index) {
        if constexpr (sizeof(Element) == 4) return __uint_as_float(word);
        else return to_float(Element{(u16)(word >> 16 * index)});
    }

    // Called between two loops over the logits. Otherwise the compiler would keep the floats of the first loop in registers for the second: of 16-bit logits
    // twice as many as there are words.
    __device__ __forceinline__ void make_words_opaque() {
#pragma unroll
        for (int j = 0; j < vectors; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) make_opaque(data[j].words[i]);
    }

    // The segment's sums, in all lanes. logits: the start of the row; index: which of its segments this is; target: the row's target, or negative. May
    // overwrite the target's logit in `data`.
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
                is_exact = !(sums.sum < largest_sum) || !(fabsf(power_of(sums.origin, scale)) < large_power / 2);
            } while (is_exact);
            if (rarely(is_exact) && sums.origin != -infinity && is_large(power_of(sums.origin, scale)))
                add_large_powers(logits + first, target - first, scale, sums);
        }
        make_words_opaque();
        if constexpr (Config::wants_argmax) find_best(first, sums);
        return sums;
    }
};
