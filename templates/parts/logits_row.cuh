// One row of logits_logp: its place in memory, its target, the arithmetic of its statistics, and its results.
// Config: element, has_softcap, has_entropy, wants_argmax
struct LogitsScale {
    float scale; // log2(e) / temperature
    float softcap, inverse_softcap;
};

template <class Config> struct LogitsRow {
    using Element = typename Config::element;
    static constexpr int ignored = -1, bad = -2;
    int place;  // index in the arrays of results: the row's number in the call, or with `scatter` its row_index
    int source; // index in the arrays of inputs; -1: row_index is out of range
    int target; // a column, or `ignored`, or `bad`

    __device__ __forceinline__ LogitsRow(const LogitsLogpParams &params, int number) : LogitsRow(find(params, number)) {
        take_target(params, load_target(params));
    }

    // The constructor's work in three steps, so that a kernel can do other things while loads are in flight: find() the row, load_target() (the words as they
    // lie in memory), take_target() (decode them).
    struct TargetWords {
        u32 low, high;
    };
    __device__ __forceinline__ static LogitsRow find(const LogitsLogpParams &params, int number) {
        LogitsRow row(number);
        if (params.row_index != nullptr) {
            i64 index = params.row_index[number];
            row.source = index >= 0 && index < params.logits_rows ? (int)index : -1;
            if (params.scatter) row.place = row.source;
        }
        return row;
    }
    __device__ __forceinline__ TargetWords load_target(const LogitsLogpParams &params) const {
        if (source < 0) return {0, 0};
        int words = params.target_bytes / 4;
        const u32 *at = (const u32 *)params.target + (i64)source * words;
        return {at[0], at[words - 1]};
    }
    __device__ __forceinline__ void take_target(const LogitsLogpParams &params, const TargetWords &words) {
        if (source < 0) return;
        i64 given = params.target_bytes == 8 ? (i64)((u64)words.high << 32 | words.low) : (i64)(int)words.low;
        if (params.ignores && given == params.ignore_index) target = ignored;
        else if (given >= 0 && given < params.vocab) target = (int)given;
    }

    // An ignored row need not be read where only logp is requested of it.
    __device__ __forceinline__ bool is_read(const LogitsLogpParams &params) const {
        return source >= 0 && (target != ignored || params.lse != nullptr || params.entropy != nullptr || params.argmax != nullptr);
    }
    __device__ __forceinline__ const Element *logits(const LogitsLogpParams &params) const {
        return (const Element *)params.logits + source * params.logits_stride;
    }
    __device__ __forceinline__ Element *gradients(const LogitsLogpParams &params) const { return (Element *)params.grad_logits + place * params.grad_stride; }
    __device__ __forceinline__ LogitsScale scale(const LogitsLogpParams &params) const {
        float scale = params.scale;
        if (params.row_temperature != nullptr && source >= 0) scale /= row_temperature(params.row_temperature[source]);
        return {scale, params.softcap, params.inverse_softcap};
    }

private:
    __device__ __forceinline__ explicit LogitsRow(int number) : place(number), source(number), target(bad) {}
};

// softcap.cuh, emitted where Config::has_softcap.
template <class Config> struct Softcap;

// Applies the softcap, if there is one; slope: its derivative.
template <class Config> __device__ __forceinline__ float soften(float logit, const LogitsScale &scale, float &slope) {
    slope = 1;
    if constexpr (Config::has_softcap) return Softcap<Config>{scale.softcap, scale.inverse_softcap}.of(logit, slope);
    return logit;
}
template <class Config> __device__ __forceinline__ float soften(float logit, const LogitsScale &scale) {
    float slope;
    return soften<Config>(logit, scale, slope);
}

// Powers of two are computed relative to a logit, the origin: 2^z2 = 2^k 2^(z2 - k), where k, the origin's power, is the integer nearest to the origin's z2.
// One fused multiply-add gives z2 - k with one rounding. Where k is large (2^23 or more), rounding to fp32 may leave k whole powers away from the origin's
// z2; there z2 - k is computed as (z - origin) times the scale, in which nothing cancels and nothing overflows.
constexpr float large_power = 8388608; // 2^23: fp32 numbers from here on are integers

__device__ __forceinline__ float power_of(float origin, const LogitsScale &scale) { return rintf(origin * scale.scale); }
__device__ __forceinline__ bool is_large(float power) { return !(fabsf(power) < large_power); }

// z2 - k of a logit z. from: k or, where k is large, the origin.
template <bool large> __device__ __forceinline__ float distance_from(float z, float from, const LogitsScale &scale) {
    return large ? (z - from) * scale.scale : fmaf(z, scale.scale, -from);
}
__device__ __forceinline__ float distance(float z, float origin, const LogitsScale &scale) {
    float k = power_of(origin, scale);
    return is_large(k) ? distance_from<true>(z, origin, scale) : distance_from<false>(z, k, scale);
}

// Sums over a row, or a segment of it, without the target: sum of 2^(z2 - k), moment of 2^(z2 - k) (z2 - k).
struct LogitsSums {
    float origin, sum, moment; // origin -inf: all logits are -inf or NaN
    float best;
    int best_index;

    // Keeps the largest logit, of equal ones that with the smallest index. NaN never wins.
    __device__ __forceinline__ void take_best(float other, int other_index) {
        if (other > best || (other == best && other_index < best_index)) {
            best = other;
            best_index = other_index;
        }
    }
};

// The statistics of a whole row, target included: log2_sum is the log2 of the sum of 2^(z2 - k), where k is the origin's power; entropy is 0 without
// has_entropy.
struct LogitsNormaliser {
    float origin, log2_sum, entropy, logp;

    // For a row whose target is ignored or bad: the totals of the terms in `sums`.
    template <bool has_entropy> __device__ __forceinline__ static LogitsNormaliser of_others(const LogitsSums &sums) {
        LogitsNormaliser others = {sums.origin, log2f(sums.sum), 0, not_a_number};
        if constexpr (has_entropy) {
            float entropy = (others.log2_sum - sums.moment / sums.sum) * ln_2;
            others.entropy = entropy < 0 ? 0 : entropy; // below 0 by rounding only; NaN stays
        }
        return others;
    }

    // z: the target's logit after the softcap. If the target's term is larger than the sum of the others, the target becomes the row's origin, and nothing
    // cancels in logp. Otherwise logp is -ln 2 or less, so that the difference of logarithms keeps its digits.
    template <bool has_entropy> __device__ __forceinline__ static LogitsNormaliser of(float z, const LogitsSums &sums, const LogitsScale &scale) {
        if (sums.sum == 0 && z == -infinity) return of_others<has_entropy>(sums);
        float d = sums.origin == -infinity ? 0 : distance(z, sums.origin, scale);
        if (!(z < infinity)) d = not_a_number;
        float power = exp2_approximate(d);
        LogitsNormaliser whole = {sums.origin, 0, 0, 0};
        if (power > sums.sum) {
            float root = exp2_approximate(-0.5f * d); // 2^-d itself may be below fp32 where the ratio is not
            float rest = log1pf(sums.sum * root * root);
            whole.origin = z;
            whole.log2_sum = fmaf(rest, log2_e, distance(z, z, scale));
            whole.logp = 0 - rest;
        } else {
            whole.log2_sum = log2f(sums.sum + power);
            whole.logp = (d - whole.log2_sum) * ln_2;
            if (whole.logp == -infinity) whole.logp = finite_product(z - sums.origin, scale.scale * ln_2); // only the logarithm to base 2 is beyond fp32
        }
        if constexpr (has_entropy) {
            LogitsNormaliser others = of_others<true>(sums);
            whole.entropy = TargetShare::of(sums.sum, others.log2_sum, d).entropy(others.entropy);
        }
        return whole;
    }

    __device__ __forceinline__ float lse(const LogitsScale &scale) const {
        float k = power_of(origin, scale);
        return is_large(k) ? fmaf(origin, scale.scale * ln_2, log2_sum * ln_2) : (k + log2_sum) * ln_2;
    }
};

template <class Config> __device__ __forceinline__ void count_bad_target(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number) {
    if (rarely(row.target == row.bad)) tally_bad_target(params.target_errors, number);
}

// Called by one thread.
template <class Config> __device__ __forceinline__ void write_results(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number,
                                                                      const LogitsSums &sums, const LogitsNormaliser &normaliser, const LogitsScale &scale) {
    count_bad_target(params, row, number);
    if (row.place < 0) return;
    bool is_row = row.source >= 0;
    if (params.lse != nullptr) params.lse[row.place] = is_row ? normaliser.lse(scale) : not_a_number;
    if constexpr (Config::has_entropy)
        if (params.entropy != nullptr) params.entropy[row.place] = is_row ? normaliser.entropy : not_a_number;
    if constexpr (Config::wants_argmax)
        if (params.argmax != nullptr) params.argmax[row.place] = is_row ? sums.best_index : 0;
    if (params.logp != nullptr) params.logp[row.place] = row.target == row.ignored ? 0 : row.target >= 0 ? normaliser.logp : not_a_number;
}
