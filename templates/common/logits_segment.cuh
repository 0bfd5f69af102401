// A segment of a row of logits, held by one warp: `vectors` times 512 bytes, 16 bytes a lane.
//
// A row is the same segments whatever computes them; each leaves its sums, which are merged in the segments' order. Within a segment the
// order is fixed too, so a row's bits depend on V and the dtype, not on the load's width, the rows beside it or the size of the device.
//
// The offset of a segment is an integer, taken from its first 512 bytes; where the sum then leaves the safe range, from all of it.
// Config: element, segment_vectors, vector_bytes, rewrites, has_softcap, has_entropy, wants_argmax
constexpr float safe_sum = 1152921504606846976.0f; // 2^60: 2^67 such sums stay finite
constexpr float lowest_power = -200;               // 2^-200 is 0 in fp32: keeps 0 * infinity out of products with powers

template <class Element> constexpr u32 minus_infinity_word = 0xff800000u; // f32
template <> constexpr u32 minus_infinity_word<bf16> = 0xff80ff80u;
template <> constexpr u32 minus_infinity_word<f16> = 0xfc00fc00u;

// The first `valid` elements of a vector; behind them, anything.
template <class Config> __device__ __forceinline__ Vector load_logits(const typename Config::element *from, int valid) {
    if (valid < vector_elements<typename Config::element>) return load_some(from, max(valid, 0));
    if constexpr (Config::rewrites && Config::vector_bytes == 16) return *(const Vector *)from; // gradients may come to lie there
    else return load_words<Config::vector_bytes>(from);
}

template <class Config> struct Segment {
    using Element = typename Config::element;
    static constexpr int elements = vector_elements<Element>, vectors = Config::segment_vectors;
    static constexpr int columns = 32 * elements * vectors;
    Vector data[vectors];
    int left; // columns up to the vocabulary's end, at most all

    __device__ __forceinline__ static int column(int j) { return (j * 32 + lane_index()) * elements; }

    // from: the segment's first logit. Columns behind the vocabulary are -inf and are not read.
    __device__ __forceinline__ void load(const Element *from, int columns_left) {
        left = columns_left;
        if (left >= columns) {
#pragma unroll
            for (int j = 0; j < vectors; j++) data[j] = load_logits<Config>(from + column(j), elements);
            return;
        }
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            data[j] = load_logits<Config>(from + column(j), left - column(j));
            cut(data[j], left - column(j));
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
                float logit = soften<Config>(z[i], scale);
                if constexpr (Config::has_softcap)
                    if (column(j) + i >= left) logit = -infinity; // softcap(-inf) is finite
                visit(logit, j * elements + i);
            }
        }
    }

    template <int some> __device__ __forceinline__ float find_offset(const LogitsScale &scale) const {
        float largest = -infinity;
        each<some>(scale, [&](float z, int) { largest = fmaxf(largest, z); });
#pragma unroll
        for (int m = 16; m > 0; m /= 2) largest = fmaxf(largest, shuffle_xor(largest, m));
        return rintf(largest * scale.scale);
    }

    __device__ __forceinline__ void add_powers(const LogitsScale &scale, LogitsSums &sums) const {
        float part[4] = {0, 0, 0, 0}, moment[2] = {0, 0};
        // Without an offset all terms are -inf or NaN: 2^z2 itself is then 0 or NaN, which is what the sum must become.
        float k = sums.offset == -infinity ? 0 : sums.offset;
        each(scale, [&](float z, int i) {
            float d = fmaf(z, scale.scale, -k), power = exp2_approximate(d);
            part[i & 3] += power;
            if constexpr (Config::has_entropy) moment[i & 1] = fmaf(power, fmaxf(d, lowest_power), moment[i & 1]);
        });
        sums.sum = (part[0] + part[1]) + (part[2] + part[3]);
        sums.moment = moment[0] + moment[1];
#pragma unroll
        for (int m = 16; m > 0; m /= 2) {
            sums.sum += shuffle_xor(sums.sum, m);
            if constexpr (Config::has_entropy) sums.moment += shuffle_xor(sums.moment, m);
        }
    }

    // visit(logit, index): as it was read, before the softcap.
    template <class Visit> __device__ __forceinline__ void each_raw(Visit visit) const {
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            float z[elements];
            widen<Element>(data[j], z);
#pragma unroll
            for (int i = 0; i < elements; i++) visit(z[i], j * elements + i);
        }
    }

    // The first of the largest logits before the softcap; NaN never wins. first: the segment's first column in the row.
    __device__ __forceinline__ void find_best(int first, LogitsSums &sums) {
        sums.best = -infinity;
        each_raw([&](float z, int) { sums.best = fmaxf(sums.best, z); });
#pragma unroll
        for (int m = 16; m > 0; m /= 2) sums.best = fmaxf(sums.best, shuffle_xor(sums.best, m));
        forget_floats();
        int place = vectors * elements; // the first one of the lane's elements; none
        each_raw([&](float z, int i) { place = min(place, z == sums.best ? i : vectors * elements); });
        sums.best_index = place == vectors * elements ? 0x7fffffff : first + column(place / elements) + place % elements;
#pragma unroll
        for (int m = 16; m > 0; m /= 2) sums.best_index = min(sums.best_index, shuffle_xor(sums.best_index, m));
    }

    // Between two walks over the logits: otherwise the first one's floats, twice as many as the words, would stay for the second.
    __device__ __forceinline__ void forget_floats() {
#pragma unroll
        for (int j = 0; j < vectors; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) forget(data[j].words[i]);
    }

    // In all lanes.
    __device__ __forceinline__ LogitsSums statistics(const LogitsScale &scale, int first) {
        LogitsSums sums;
        sums.offset = find_offset<1>(scale);
        bool is_exact = false;
        do {
            forget_floats();
            if (is_exact) sums.offset = find_offset<vectors>(scale);
            forget_floats();
            add_powers(scale, sums);
            if (is_exact) break;
            is_exact = !(sums.sum < safe_sum) || sums.offset == -infinity;
        } while (is_exact);
        forget_floats();
        if constexpr (Config::wants_argmax) find_best(first, sums);
        return sums;
    }
};
