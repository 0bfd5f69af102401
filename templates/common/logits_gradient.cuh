// From logits to their gradients, in the registers that hold a segment.
//
// With p = softmax(z) and H the row's entropy, an upstream gradient of logp, lse and entropy gives
//     dz[v] = g_logp (v = target) + p[v] (g_lse - g_logp - g_entropy (H + log p[v])),   p[v] = 2^(d - log2_sum),  d = z2[v] - k,
// whose factors of 1 and d are the same for the whole row. Where v is the target, 1 - p comes from logp, in which nothing has cancelled. The
// softcap's derivative is 1 - tanh^2.
// Config: as for a segment
struct LogitsFactors {
    float origin;
    float power, moment; // dz[v] = 2^d (power + moment d) where v is no target
    float target;        // dz where it is
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

// wants_target: normaliser.logp is there, and so will be factors.target.
template <class Config>
__device__ __forceinline__ LogitsFactors find_factors(const LogitsLogpParams &params, const LogitsRow<Config> &row, const LogitsUpstream &upstream,
                                                      const LogitsNormaliser &normaliser, bool wants_target) {
    if (row.target < 0) return {0, 0, 0, 0};
    float inverse_temperature = row.scale(params).scale * ln_2;
    float g = upstream.logp * inverse_temperature, g_lse = upstream.lse * inverse_temperature, g_entropy = upstream.entropy * inverse_temperature;
    float inverse_sum = exp2_approximate(-normaliser.log2_sum);
    LogitsFactors factors = {normaliser.origin, (g_lse - g) * inverse_sum, 0, 0};
    if constexpr (Config::has_entropy) {
        factors.power -= g_entropy * (normaliser.entropy - normaliser.log2_sum * ln_2) * inverse_sum;
        factors.moment = -g_entropy * ln_2 * inverse_sum;
    }
    if (!wants_target) return factors;
    float p = exp2_approximate(normaliser.logp * log2_e);
    factors.target = g * -expm1f(normaliser.logp);
    if (p == 0) return factors; // its logarithm may be -inf
    factors.target = fmaf(p, g_lse, factors.target);
    if constexpr (Config::has_entropy) factors.target = fmaf(-p * g_entropy, normaliser.entropy + normaliser.logp, factors.target);
    return factors;
}

// from: as distance_from wants it.
template <class Config, bool large>
__device__ __forceinline__ float gradient_of(float z, float from, const LogitsScale &scale, const LogitsFactors &factors) {
    float d = distance_from<large>(z, from, scale);
    if (large && d > 0) d = 0; // of a given lse, whose rounding may be many powers: an origin of the row's own is its largest logit
    float slope = factors.power;
    if constexpr (Config::has_entropy) slope = fmaf(factors.moment, fmaxf(d, lowest_power), slope);
    return exp2_approximate(d) * slope;
}

template <class Config, bool large>
__device__ __forceinline__ void to_gradients_from(float from, Segment<Config> &segment, const LogitsScale &scale, const LogitsFactors &factors) {
    using Element = typename Config::element;
    constexpr int elements = Segment<Config>::elements;
#pragma unroll
    for (int j = 0; j < Segment<Config>::vectors; j++) {
        float z[elements];
        widen<Element>(segment.data[j], z);
#pragma unroll
        for (int i = 0; i < elements; i++) {
            float slope, capped = soften<Config>(z[i], scale, slope);
            z[i] = gradient_of<Config, large>(capped, from, scale, factors) * slope;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (sizeof(Element) == 4) segment.data[j].words[i] = __float_as_uint(z[i]);
            else segment.data[j].words[i] = round_pair<Element>(z[2 * i], z[2 * i + 1]);
        }
    }
}

// The segment's logits become gradients, all but the target's, which write_target writes behind it.
template <class Config>
__device__ __forceinline__ void to_gradients(Segment<Config> &segment, const LogitsScale &scale, const LogitsFactors &factors) {
    float k = power_of(factors.origin, scale);
    if (is_large(k)) to_gradients_from<Config, true>(factors.origin, segment, scale, factors);
    else to_gradients_from<Config, false>(k, segment, scale, factors);
}

template <class Config> __device__ __forceinline__ void clear(Segment<Config> &segment) {
#pragma unroll
    for (int j = 0; j < Segment<Config>::vectors; j++) segment.data[j] = Vector{{0, 0, 0, 0}};
}

template <int bytes> __device__ __forceinline__ void store_words(const Vector &vector, void *to) {
    if constexpr (bytes == 16) *(Vector *)to = vector;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (bytes == 8) {
            if (i % 2 == 0) ((HalfVector *)to)[i / 2] = HalfVector{{vector.words[i], vector.words[i + 1]}};
        } else if constexpr (bytes == 4) {
            ((u32 *)to)[i] = vector.words[i];
        } else if constexpr (bytes == 2) {
            ((u16 *)to)[2 * i] = (u16)vector.words[i];
            ((u16 *)to)[2 * i + 1] = (u16)(vector.words[i] >> 16);
        }
    }
}

// to: the gradient of the segment's first logit.
template <class Config> __device__ __forceinline__ void store_segment(const Segment<Config> &segment, typename Config::element *to) {
    using Element = typename Config::element;
#pragma unroll
    for (int j = 0; j < Segment<Config>::vectors; j++) {
        int column = Segment<Config>::column(j), valid = segment.left - column;
        if (valid >= Segment<Config>::elements) {
            store_words<Config::vector_bytes>(segment.data[j], to + column);
            continue;
        }
#pragma unroll
        for (int i = 0; i < Segment<Config>::elements; i++) {
            if (i >= valid) continue;
            if constexpr (sizeof(Element) == 4) ((u32 *)to)[column + i] = segment.data[j].words[i];
            else ((u16 *)to)[column + i] = (u16)(segment.data[j].words[i / 2] >> (i % 2 * 16));
        }
    }
}

// By the lane that has stored the target's segment at that column; logit: the target's, from before.
template <class Config>
__device__ __forceinline__ void write_target(float logit, const LogitsScale &scale, const LogitsFactors &factors, typename Config::element *to) {
    float slope;
    soften<Config>(logit, scale, slope);
    store_rounded(factors.target * slope, to);
}

// Whether this lane of a warp with the segments first, first + stride, ... holds the target's column.
template <class Config> __device__ __forceinline__ bool owns_target(const LogitsRow<Config> &row, int first, int stride) {
    int segment = row.target / Segment<Config>::columns, column = row.target % Segment<Config>::columns;
    return row.target >= 0 && segment >= first && (segment - first) % stride == 0 && column / Segment<Config>::elements % 32 == lane_index();
}

// Writes one segment of a row's gradients. `segment` holds its logits, but not of an ignored row or a bad target: those count for nothing and may
// be NaN. target_logit: where this lane owns the target.
template <class Config>
__device__ __forceinline__ void write_gradients(const LogitsLogpParams &params, const LogitsRow<Config> &row, Segment<Config> &segment, int index,
                                                const LogitsScale &scale, const LogitsFactors &factors, float target_logit) {
    constexpr int columns = Segment<Config>::columns;
    typename Config::element *gradients = row.gradients(params);
    segment.left = min(params.vocab - index * columns, columns);
    if (row.target < 0) clear(segment);
    else to_gradients(segment, scale, factors);
    store_segment(segment, gradients + (i64)index * columns);
    if (row.target / columns == index && owns_target(row, index, 1)) write_target<Config>(target_logit, scale, factors, gradients + row.target);
}
