// Prepares linear_logp's backward: finds the valid rows, and computes the coefficients of their derivatives (RowGradient, params/rows.h). With
// params.indexes, a launch of one block packs the indices of the valid rows; with params.differentiates, a launch of any number of blocks computes the
// coefficients.
//
// A row is valid when its target is neither ignored nor outside the vocabulary. The kernels that follow work on packed valid rows, so the others cost
// nothing, and whatever their hidden holds has no effect. Where the derivatives are stored in fp16 (Config::scales), they are multiplied by a power of two,
// and the products by its inverse. It brings the largest finite upstream gradient, which bounds all derivatives, to 2^14 .. 2^15; derivatives below 2^-28 of
// that gradient lose digits.
//
// The tile kernels compute p as 2^x, where x = z2 - offset has an integer offset; the fractional rest of the log2 of the row's sum goes into the
// coefficients. The derivative by the target's logit contains 1 - p, which would lose its digits for a likely target: where logp is known, it is computed
// here from logp.
// Config: threads, scales, shared_bytes
template <class Config> struct BackwardRows {
    static constexpr int warps = Config::threads / 32;
    static_assert(warps == 32, "each lane has a warp's number");
    const BackwardRowsParams &params;

    __device__ __forceinline__ i64 target(int i) const { return load_target(params.target, params.target_bytes, i); }
    __device__ __forceinline__ bool is_valid(i64 t) const { return !is_ignored(params, t) && t >= 0 && t < params.vocab; }
    __device__ __forceinline__ static float optional(const float *from, int i) { return from ? from[i] : 0; }
    __device__ __forceinline__ float inverse_temperature(int i) const {
        return params.row_temperature ? 1 / row_temperature(params.row_temperature[i]) : params.inverse_temperature;
    }

    // The same bits as the forward's scale: with a large logit the last bit matters.
    __device__ __forceinline__ float scale(int i) const {
        return params.row_temperature ? params.scale / row_temperature(params.row_temperature[i]) : params.scale;
    }

    // The largest of all threads' values, in every thread.
    __device__ __forceinline__ static float block_largest(float (&shared)[warps], float value) {
        int warp = warp_index();
        value = warp_largest(value);
        block_barrier(); // after the last use of `shared`
        if (lane_index() == 0) shared[warp] = value;
        block_barrier();
        return warp_largest(shared[lane_index()]);
    }

    // The largest finite magnitude of a class weight, by which g_sum is multiplied.
    __device__ __forceinline__ float largest_class_weight(float (&shared)[warps]) const {
        if (!params.class_weights) return 1;
        float largest = 0;
#pragma unroll 1
        for (int v = threadIdx.x; is_before(v, params.classes); v = column_at(v, Config::threads)) {
            float w = fabsf(class_weight_at(params.class_weights, params.class_weight_dtype, v));
            if (w < infinity) largest = fmaxf(largest, w);
        }
        return block_largest(shared, largest);
    }

    // A bound of all finite derivatives: the largest sum of a row's upstream gradients. That of the entropy is multiplied by log p, which is assumed to be at
    // most 64 in magnitude.
    __device__ __forceinline__ float largest_gradient(float (&shared)[warps]) const {
        float largest = 0, class_weight = params.g_sum ? largest_class_weight(shared) : 0;
#pragma unroll 1
        for (int i = threadIdx.x; i < params.rows; i += Config::threads) {
            if (!is_valid(target(i))) continue;
            float g = fabsf(params.g_logp[i]) + fabsf(optional(params.g_lse, i)) + class_weight * fabsf(optional(params.g_sum, i)) +
                      64 * fabsf(optional(params.g_entropy, i));
            g *= inverse_temperature(i);
            if (g < infinity) largest = fmaxf(largest, g); // infinite and NaN gradients have no digits to keep
        }
        return block_largest(shared, largest);
    }

    __device__ __forceinline__ float choose_factor(float (&shared)[warps]) const {
        float largest = largest_gradient(shared);
        if (!(largest > 0)) return 1;
        int exponent = 14 - (((int)__float_as_uint(largest) >> 23) - 127);
        exponent = min(exponent, 100); // a finite `largest` never makes it less than -113
        return __uint_as_float((u32)(exponent + 127) << 23);
    }

    __device__ __forceinline__ float factor(float (&shared)[warps]) const {
        if constexpr (Config::scales) return choose_factor(shared);
        else return 1;
    }

    // The log2 of the row's sum, as an integer offset and the rest. has_logp: logp is known.
    struct Normaliser {
        float offset, rest, logp;
        bool has_logp;
    };

    __device__ __forceinline__ Normaliser normaliser(int at, int i) const {
        if (params.is_handed_over) return {params.gradient[at].offset, params.gradient[at].prob_coefficient, params.gradient[at].target_coefficient, true};
        float lse = params.lse[i], offset = rintf(finite_product(lse, log2_e));
        return {offset, is_large(offset) ? 0 : fmaf(lse, log2_e, -offset), params.logp ? params.logp[i] : 0, params.logp != nullptr};
    }

    // Where logp is known: the derivative by the target's logit, without the part of uniform_coefficient. p log p is 0 where p is.
    __device__ __forceinline__ static float by_target(float logp, float g_logp, float g_lse, float g_entropy, float entropy) {
        return fmaf(expf(logp), g_lse - g_entropy * (fmaxf(logp, -150.0f) + entropy), -g_logp * expm1f(logp));
    }

    __device__ __forceinline__ RowGradient gradient(int at, float factor) const {
        int i = params.row[at];
        float inverse = inverse_temperature(i), entropy = params.g_entropy ? params.entropy[i] : 0;
        float g_logp = params.g_logp[i] * factor, g_lse = optional(params.g_lse, i) * factor, g_entropy = optional(params.g_entropy, i) * factor;
        float prob_coefficient = (g_lse - g_logp - g_entropy * entropy) * inverse, entropy_coefficient = -g_entropy * ln_2 * inverse;
        Normaliser sum = normaliser(at, i);
        float share = exp2f(-sum.rest); // p = share 2^x
        RowGradient row = {};
        row.scale = scale(i);
        row.offset = sum.offset;
        row.prob_coefficient = (prob_coefficient - entropy_coefficient * sum.rest) * share;
        row.entropy_coefficient = entropy_coefficient * share;
        row.target_coefficient = (sum.has_logp ? by_target(sum.logp, g_logp, g_lse, g_entropy, entropy) : g_logp) * inverse;
        row.is_whole = sum.has_logp;
        row.uniform_coefficient = optional(params.g_sum, i) * factor * inverse;
        row.target = (int)target(i);
        return row;
    }

    // In how many of the block's threads before this one the condition holds; total: in how many of all threads.
    __device__ __forceinline__ static int count_before(bool condition, int (&shared)[warps], int &total) {
        u32 votes = warp_ballot(condition);
        int warp = warp_index();
        if (lane_index() == 0) shared[warp] = __popc(votes);
        block_barrier();
        int of_warp = shared[lane_index()], before = warp_sum(lane_index() < warp ? of_warp : 0);
        total = warp_sum(of_warp);
        block_barrier();
        return before + __popc(votes & ((1u << lane_index()) - 1));
    }

    __device__ __forceinline__ void note_error(int i) const {
        if (params.target_errors) tally_bad_target(params.target_errors, i); // NULL: bad targets are counted elsewhere
    }

    // Packs the indices of the valid rows in their original order, and counts bad targets.
    __device__ __forceinline__ void index_rows(int (&shared)[warps]) const {
        int done = 0, total;
#pragma unroll 1
        for (int first = 0; first < params.rows; first += Config::threads) {
            int i = first + threadIdx.x;
            bool is_row = i < params.rows;
            i64 t = is_row ? target(i) : -1;
            bool valid = is_row && is_valid(t);
            int at = done + count_before(valid, shared, total);
            if (valid) params.row[at] = i;
            else if (is_row && !is_ignored(params, t)) note_error(i);
            if (is_row) params.packed_index[i] = valid ? at : -1;
            done += total;
        }
        if (threadIdx.x == 0) {
            *params.count = done;
            if (params.mark) *params.mark = params.mark_value;
        }
        count_chunks(done);
        block_barrier();
    }

    __device__ __forceinline__ void count_chunks(int count) const {
#pragma unroll 1
        for (int c = threadIdx.x; c < params.chunks; c += Config::threads)
            params.chunk_counts[c] = min(max(count - c * params.chunk_rows, 0), params.chunk_rows);
    }

    // Whether count, row and packed_index are those of this backward's forward: the mark matches, and the count is possible.
    __device__ __forceinline__ bool is_forwards() const {
        if (!params.mark) return true;
        return *params.mark == params.mark_value && *params.count >= 0 && *params.count <= params.rows;
    }

    // The number of valid rows; where the forward's index does not match, all rows, each in its own place. No block writes what another block's decision
    // depends on.
    __device__ __forceinline__ int take_count(bool matches, bool is_first) const {
        int count = matches ? *params.count : params.rows;
        if (params.mark && is_first) {
            *params.taken = count;
            if (!matches) atomicAdd(&tally_now(params.unmatched)[0], 1ull);
        }
        return count;
    }

    // The coefficients of packed row `at`. A row that cannot be the forward's (its target has changed, or the workspace was overwritten) gets NaN.
    __device__ __forceinline__ RowGradient take_row(int at, float factor, bool matches) const {
        int i = matches ? params.row[at] : at;
        bool is_row = i >= 0 && i < params.rows;
        if (!params.mark || (matches && is_row && is_valid(target(i)))) return gradient(at, factor);
        if (!matches) params.packed_index[at] = at;
        if (!matches || !is_row) params.row[at] = at;
        constexpr float none = not_a_number;
        return RowGradient{none, none, none, none, none, 0, none, 1};
    }

    __device__ __forceinline__ void differentiate(float factor) const {
        int stride = gridDim.x * Config::threads, first = blockIdx.x * Config::threads + threadIdx.x;
        bool matches = is_forwards();
        int count = take_count(matches, first == 0);
#pragma unroll 1
        for (int at = first; at < count; at += stride) {
            RowGradient row = take_row(at, factor, matches);
            params.gradient[at] = row;
            params.targets[at].target = row.target;
            if (params.row_factor) complete_saved_exp(at, row);
        }
        // The tile kernels work on whole blocks of rows: rows past the last valid one have coefficients 0 and no target.
        int whole_blocks = (count + (FLP_BACKWARD_ROW_BLOCK - 1)) / FLP_BACKWARD_ROW_BLOCK * FLP_BACKWARD_ROW_BLOCK;
#pragma unroll 1
        for (int at = count + first; at < whole_blocks; at += stride) params.gradient[at] = RowGradient{0, 0, 0, 0, 0, -1, 0, 0};
        if (first != 0) return;
        for (int i = 0; i < FLP_MEETINGS; i++) params.meetings[i] = 0;
        *params.factor = factor;
        *params.inverse_factor = 1 / factor;
    }

    // With saved exponentials e[v] = 2^(z2[v] - k), a row's derivatives are row_factor e[v], except the target's, whose e[v] is 0.
    __device__ __forceinline__ void complete_saved_exp(int at, const RowGradient &row) const {
        params.row_factor[at] = row.prob_coefficient * exp2f(params.saved_exp_offset[at] - row.offset);
        if (row.target < params.saved_columns) params.targets[at].derivative = row.target_coefficient;
    }
};

template <class Config> struct BackwardRowsShared {
    float largest[BackwardRows<Config>::warps];
    int votes[BackwardRows<Config>::warps];
};

template <class Config> __device__ __forceinline__ void linear_logp_backward_rows(const BackwardRowsParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(BackwardRowsShared<Config> *)dynamic_shared;
    static_assert(sizeof(shared) == Config::shared_bytes, "gen/kernels/helpers.lua disagrees");
    wait_for_previous_kernel();
    allow_next_kernel();
    BackwardRows<Config> rows = {params};
    if (params.indexes) rows.index_rows(shared.votes);
    if (params.differentiates) rows.differentiate(rows.factor(shared.largest));
}
