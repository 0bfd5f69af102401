// One row of logits_logp: where it lies, what is wanted of it, and its results.
// Config: element, has_softcap, has_entropy, wants_argmax
struct LogitsScale {
    float scale; // log2(e) / temperature
    float softcap, inverse_softcap;
};

template <class Config> struct LogitsRow {
    using Element = typename Config::element;
    static constexpr int ignored = -1, bad = -2;
    int place;  // in the arrays of results: the row's number in this call, or where it is scattered to
    int source; // in the arrays of inputs; -1: the index names no row
    int target; // a column, or ignored, or bad

    __device__ __forceinline__ LogitsRow(const LogitsLogpParams &params, int number) : LogitsRow(find(params, number)) {
        take_target(params, load_target(params));
    }

    // In three steps, so that a kernel can go on while memory answers: where the row is, the target as it lies in memory, what it says.
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

    // An ignored row of which nothing but logp is wanted need not be read.
    __device__ __forceinline__ bool is_read(const LogitsLogpParams &params) const {
        return source >= 0 && (target != ignored || params.lse != nullptr || params.entropy != nullptr || params.argmax != nullptr);
    }
    __device__ __forceinline__ const Element *logits(const LogitsLogpParams &params) const {
        return (const Element *)params.logits + source * params.logits_stride;
    }
    __device__ __forceinline__ Element *gradients(const LogitsLogpParams &params) const {
        return (Element *)params.grad_logits + place * params.grad_stride;
    }
    __device__ __forceinline__ LogitsScale scale(const LogitsLogpParams &params) const {
        float scale = params.scale;
        if (params.row_temperature != nullptr && source >= 0) scale /= params.row_temperature[source];
        return {scale, params.softcap, params.inverse_softcap};
    }

  private:
    __device__ __forceinline__ explicit LogitsRow(int number) : place(number), source(number), target(bad) {}
};

// slope: the softcap's derivative.
template <class Config> __device__ __forceinline__ float soften(float logit, const LogitsScale &scale, float &slope) {
    slope = 1;
    if constexpr (Config::has_softcap) return scale.softcap * hyperbolic_tangent(logit * scale.inverse_softcap, slope);
    return logit;
}
template <class Config> __device__ __forceinline__ float soften(float logit, const LogitsScale &scale) {
    float slope;
    return soften<Config>(logit, scale, slope);
}

// A row's sums: 2^offset times sum of 2^(z2 - offset), and of that times (z2 - offset).
struct LogitsSums {
    float offset, sum, moment;
    float best;
    int best_index;
};

// log2 of the sum beside the offset, and the entropy: what logp and the gradients need.
struct LogitsNormaliser {
    float offset, log2_sum, entropy;
    __device__ __forceinline__ static LogitsNormaliser of(const LogitsSums &sums) {
        float log2_sum = log2f(sums.sum);
        return {sums.offset, log2_sum, (log2_sum - sums.moment / sums.sum) * ln_2};
    }
};

template <class Config>
__device__ __forceinline__ void count_bad_target(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number) {
    if (row.target == row.bad) tally_bad_target(params.target_errors, number);
}

// One thread writes the results. target_logit: of a known target.
template <class Config>
__device__ __forceinline__ void write_results(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number, const LogitsSums &sums,
                                              const LogitsNormaliser &normaliser, float target_logit) {
    count_bad_target(params, row, number);
    if (row.place < 0) return;
    bool is_row = row.source >= 0;
    if (params.lse != nullptr) params.lse[row.place] = is_row ? (normaliser.offset + normaliser.log2_sum) * ln_2 : not_a_number;
    if constexpr (Config::has_entropy)
        if (params.entropy != nullptr) params.entropy[row.place] = is_row ? normaliser.entropy : not_a_number;
    if constexpr (Config::wants_argmax)
        if (params.argmax != nullptr) params.argmax[row.place] = is_row ? sums.best_index : 0;
    if (params.logp == nullptr) return;
    float logp = not_a_number;
    if (row.target == row.ignored) {
        logp = 0;
    } else if (row.target >= 0) {
        LogitsScale scale = row.scale(params);
        // One rounding of the logit against the offset, an integer: a likely target keeps its small bits.
        logp = (fmaf(soften<Config>(target_logit, scale), scale.scale, -normaliser.offset) - normaliser.log2_sum) * ln_2;
        if (logp > 0) logp = 0; // rounding only; NaN stays
    }
    params.logp[row.place] = logp;
}
