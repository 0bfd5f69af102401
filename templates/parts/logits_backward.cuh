// From logits to their gradients, in the registers that hold a segment.
//
// With p = softmax(z) and H the row's entropy, an upstream gradient of logp, lse and entropy gives
//     dz[v] = g_logp [v = target] + p[v] (g_lse - g_logp - g_entropy (H + log p[v])),   p[v] = 2^(d - log2_sum),  d = z2[v] - k.
// In the second term, the factor of p[v] is linear in d, with coefficients that are the same for the whole row. For the target, 1 - p is computed from logp,
// which has lost no digits to cancellation. Everything is then multiplied by the softcap's derivative, 1 - tanh^2.
// Config: those of logits_segment
struct LogitsFactors {
    float from; // k, the origin's power; where that is large, the origin itself (logits_row.cuh)
    bool large;
    float power, moment; // dz[v] = 2^d (power + moment d) where v is not the target
    float target;        // dz[target], softcap included
};

struct LogitsUpstream {
    float logp, lse, entropy;
};

template <class Config> __device__ __forceinline__ LogitsUpstream load_upstream(const LogitsLogpParams &params, const LogitsRow<Config> &row) {
    LogitsUpstream upstream = {0, 0, 0};
    if (row.target < 0) return upstream;
    upstream.logp = params.g_logp[row.place];
    if (params.g_lse != nullptr) upstream.lse = params.g_lse[row.place];
    if constexpr (Config::has_entropy)
        if (params.g_entropy != nullptr) upstream.entropy = params.g_entropy[row.place];
    return upstream;
}

// wants_target: normaliser.logp and target_logit are valid, and factors.target is computed.
template <class Config> __device__ __forceinline__ LogitsFactors find_factors(const LogitsLogpParams &params, const LogitsRow<Config> &row,
                                                                              const LogitsScale &scale, const LogitsUpstream &upstream,
                                                                              const LogitsNormaliser &normaliser, bool wants_target, float target_logit) {
    if (row.target < 0) return {0, false, 0, 0, 0};
    float inverse_temperature = scale.scale * ln_2;
    float g = upstream.logp * inverse_temperature, g_lse = upstream.lse * inverse_temperature, g_entropy = upstream.entropy * inverse_temperature;
    float inverse_sum = exp2_approximate(-normaliser.log2_sum);
    float k = power_of(normaliser.origin, scale);
    LogitsFactors factors = {is_large(k) ? normaliser.origin : k, is_large(k), (g_lse - g) * inverse_sum, 0, 0};
    if constexpr (Config::has_entropy) {
        factors.power -= g_entropy * (normaliser.entropy - normaliser.log2_sum * ln_2) * inverse_sum;
        factors.moment = -g_entropy * ln_2 * inverse_sum;
    }
    if (!wants_target) return factors;
    float p = exp2_approximate(normaliser.logp * log2_e);
    factors.target = g * -expm1f(normaliser.logp);
    if (p != 0) { // where it is 0, logp may be -inf
        factors.target = fmaf(p, g_lse, factors.target);
        if constexpr (Config::has_entropy) factors.target = fmaf(-p * g_entropy, normaliser.entropy + normaliser.logp, factors.target);
    }
    if constexpr (Config::has_softcap) {
        float slope;
        soften<Config>(target_logit, scale, slope);
        factors.target *= slope;
    }
    return factors;
}

template <class Config, bool large> __device__ __forceinline__ float gradient_of(float z, const LogitsScale &scale, const LogitsFactors &factors) {
    float d = distance_from<large>(z, factors.from, scale);
    if (large && d > 0) d = 0; // possible only with an lse from the caller, whose rounding may be many powers: else the origin is the row's largest logit
    float slope = factors.power;
    if constexpr (Config::has_entropy) slope = fmaf(factors.moment, fmaxf(d, lowest_power), slope);
    return exp2_approximate(d) * slope;
}

template <class Config, bool large> __device__ __forceinline__ float element_gradient(float logit, const LogitsScale &scale, const LogitsFactors &factors) {
    float slope, capped = soften<Config>(logit, scale, slope);
    return gradient_of<Config, large>(capped, scale, factors) * slope;
}

// element_gradient for a logit that is within the softcap (softcap.cuh) and whose row's power is not large.
template <class Config> __device__ __forceinline__ float gradient_within(float logit, const LogitsScale &scale, const LogitsFactors &factors) {
    if constexpr (Config::has_softcap) {
        float slope, capped = Segment<Config>::softcap_of(scale).of_within(logit, slope);
        return gradient_of<Config, false>(capped, scale, factors) * slope;
    } else {
        return gradient_of<Config, false>(logit, scale, factors);
    }
}

// Replaces the segment's logits by their gradients. The target's gradient is not among them: write_gradients stores it afterwards.
template <class Config> __device__ __forceinline__ void to_gradients(Segment<Config> &segment, const LogitsScale &scale, const LogitsFactors &factors) {
    using Element = typename Config::element;
    if constexpr (Config::has_softcap) {
        SegmentInMemory<Config> in_memory;
        if (rarely(!segment.is_within_softcap(scale, in_memory))) {
            in_memory.lay_down(segment);
            in_memory.change([&](float z) { return element_gradient<Config, false>(z, scale, factors); });
            in_memory.take_up(segment);
            return;
        }
    }
#pragma unroll
    for (int j = 0; j < Segment<Config>::vectors; j++)
        change_elements<Element>(segment.data[j], [&](float z) { return gradient_within<Config>(z, scale, factors); });
}

// The same where factors.large, from memory to memory (`from` and `to` may be equal), so that a kernel contains only one unrolled loop over its registers.
// left: columns of the segment.
template <class Config> __device__ __forceinline__ void write_large_gradients(const typename Config::element *from, typename Config::element *to, int left,
                                                                              const LogitsScale &scale, const LogitsFactors &factors) {
    for (int i = lane_index(); i < left; i += 32) store_rounded(element_gradient<Config, true>(to_float(from[i]), scale, factors), to + i);
}

template <class Config> __device__ __forceinline__ void clear(Segment<Config> &segment) {
#pragma unroll
    for (int j = 0; j < Segment<Config>::vectors; j++) segment.data[j] = Vector{{0, 0, 0, 0}};
}

// Stores the elements `low` .. `high` - 1 of a vector.
template <class Element> __device__ __forceinline__ void store_between(const Vector &vector, Element *to, int low, int high) {
#pragma unroll
    for (int i = 0; i < vector_elements<Element>; i++) {
        if (i < low || i >= high) continue;
        if constexpr (sizeof(Element) == 4) ((u32 *)to)[i] = vector.words[i];
        else ((u16 *)to)[i] = (u16)(vector.words[i / 2] >> (i % 2 * 16));
    }
}

// to: where the gradient of the segment's first logit goes; 16-byte aligned.
template <class Config> __device__ __forceinline__ void store_aligned(const Segment<Config> &segment, typename Config::element *to) {
    constexpr int elements = Segment<Config>::elements;
#pragma unroll
    for (int j = 0; j < Segment<Config>::vectors; j++) {
        int at = Segment<Config>::column(j), valid = segment.left - at;
        if (valid >= elements) *(Vector *)(to + at) = segment.data[j];
        else store_between(segment.data[j], to + at, 0, valid);
    }
}

// The same at any address. The segment's data is shifted into vectors that are aligned in memory; the first and the last of these, which may be shared with
// neighbouring segments, are written element by element. segment.data is destroyed.
template <class Config> __device__ __forceinline__ void store_shifted(Segment<Config> &segment, typename Config::element *to) {
    constexpr int elements = Segment<Config>::elements, vectors = Segment<Config>::vectors, columns = Segment<Config>::columns;
    int before = (int)((u64)to % 16) / (int)sizeof(*to), end = before + segment.left;
    if (lane_index_reread() == 31) store_between(segment.data[vectors - 1], to + columns - elements, elements - before, segment.left - (columns - elements));
    unshift_vectors(segment.data, before * (int)sizeof(*to));
    to -= before;
#pragma unroll
    for (int j = 0; j < vectors; j++) {
        int at = Segment<Config>::column(j);
        if (at >= before && at + elements <= end) *(Vector *)(to + at) = segment.data[j];
    }
    if (before > 0 && lane_index_reread() == 0) store_between(segment.data[0], to, before, end);
    if (segment.left == columns || end % elements == 0) return;
    int last = end / (32 * elements); // the same in all lanes
    Vector vector = segment.data[0];
#pragma unroll
    for (int j = 1; j < vectors; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) vector.words[i] = j == last ? segment.data[j].words[i] : vector.words[i];
    int at = Segment<Config>::column(last);
    if (last < vectors && at < end && at + elements > end) store_between(vector, to + at, before - at, end - at);
}

// Whether this lane holds the row's target, in a segment whose first column is `first`.
template <class Config> __device__ __forceinline__ bool owns_target(const LogitsRow<Config> &row, int first) {
    u32 column = row.target - first;
    return row.target >= 0 && column < Segment<Config>::columns && column / Segment<Config>::elements % 32 == lane_index();
}

// Writes a segment's worth of a row's gradients, from column `first` on. `segment` holds their logits, unless the row is ignored or its target is bad: then
// its gradients are 0 and `segment` is not read, since the logits may be NaN.
template <class Config> __device__ __forceinline__ void write_gradients(const LogitsLogpParams &params, const LogitsRow<Config> &row, Segment<Config> &segment,
                                                                        int first, const LogitsScale &scale, const LogitsFactors &factors) {
    typename Config::element *to = row.gradients(params) + first;
    segment.left = min(params.vocab - first, Segment<Config>::columns);
    if (rarely(factors.large)) {
        warp_barrier(); // where gradients overwrite logits: other lanes have read what this one will write
        write_large_gradients<Config>(row.logits(params) + first, to, segment.left, scale, factors);
        warp_barrier(); // another lane may own the target's column
    } else {
        if (row.target < 0) clear(segment);
        else to_gradients(segment, scale, factors);
        if constexpr (is_shifted<Config>) {
            store_shifted(segment, to);
            warp_barrier(); // another lane may own the target's column
        } else {
            store_aligned(segment, to);
        }
    }
    if (owns_target(row, first)) store_rounded(factors.target, to + (row.target - first));
}
