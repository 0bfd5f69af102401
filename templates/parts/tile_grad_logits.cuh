// The backward's epilogue: from accumulator tiles to the derivatives of the loss by the logits.
//
// The derivative by the target's logit is stored apart, in RowTarget (params/rows.h), and is 0 in the tile. So are those of columns past the vocabulary and
// of rows past the last valid one.
// Config: fragment_columns, has_bias, bias_element, has_softcap, wants_entropy, wants_logit_sum, has_class_weights, class_element, correction

// softcap.cuh, emitted where Config::has_softcap.
template <class Config> struct Softcap;

template <class Config> struct TileGradLogits {
    static constexpr int count = Config::fragment_columns / 2; // accumulators of a thread
    // What options do with each logit is done in chunks of accumulators: the branch in each chunk keeps the compiler from interleaving it with the next, for
    // which there are no registers.
    static constexpr bool by_chunks = Config::has_bias || Config::has_softcap || Config::wants_entropy || Config::wants_logit_sum;
    static constexpr int unroll_chunk = by_chunks ? 16 : count;
    static_assert(count % unroll_chunk == 0, "whole chunks");
    RowGradient row[2];
    int first_row;

    __device__ __forceinline__ void begin(const GradLogitsParams &params, int first) {
        first_row = first;
#pragma unroll
        for (int h = 0; h < 2; h++) row[h] = params.gradient[first_row + lane_index_reread() / 4 + 8 * h];
    }

    // Accumulator i's column relative to the thread's first one. Comparisons are of this compile-time constant with a distance: the columns themselves would
    // take a register each.
    __device__ __forceinline__ static constexpr int offset(int i) { return (i / 4) * 8 + (i & 1); }

    // Replaces z, which is hidden . weight^T of this warp's rows and the columns from first_column on, by the derivatives.
    __device__ __forceinline__ void transform(const GradLogitsParams &params, float (&z)[count], int first_column) const {
        constexpr float correction = Config::has_bias || Config::has_softcap ? 1 : Config::correction;
        float scale[2] = {row[0].scale * correction, row[1].scale * correction};
        int column = column_at(first_column, 2 * (lane_index() % 4)); // the thread's first
#pragma unroll
        for (int i = 0; i < count; i += unroll_chunk) transform_chunk(params, &z[i], scale, column_at(column, offset(i)));
    }

    __device__ __forceinline__ void transform_chunk(const GradLogitsParams &params, float *z, const float (&scale)[2], int column) const {
        if constexpr (Config::has_bias) add_bias(params, z, column);
        bool is_special = rarely(warp_any(is_near_target(column) || has_masked(params, column)));
        bool is_beyond = false; // some logit is beyond the softcap's polynomial (softcap.cuh)
        if constexpr (Config::has_softcap) is_beyond = has_beyond(params, z);
        ValuesInMemory<unroll_chunk> in_memory;
        if (is_special) take_out(params, z, in_memory, scale, column);
        if (rarely(warp_any(is_beyond || is_large(row[0].offset) || is_large(row[1].offset)))) {
            in_memory.lay_down(z);
            in_memory.visit(
                [&](float &value, int j, int place) { value = derivative<true>(params, value, scale[j / 2], row[j / 2], column_at(column, place)); });
            in_memory.take_up(z);
        } else {
#pragma unroll
            for (int i = 0; i < unroll_chunk; i++) {
                int h = (i >> 1) & 1;
                z[i] = derivative<false>(params, z[i], scale[h], row[h], column_at(column, offset(i)));
            }
        }
        // In all other kernels, the derivatives of what take_out() has removed are 0 already.
        if constexpr (Config::has_softcap || Config::wants_logit_sum) {
            if (is_special) clear(params, z, in_memory, column);
        }
    }

    // Whether a row's target lies between the chunk's first and last columns.
    __device__ __forceinline__ bool is_near_target(int column) const {
        return (unsigned)columns_left(column, row[0].target) <= offset(unroll_chunk - 1) ||
               (unsigned)columns_left(column, row[1].target) <= offset(unroll_chunk - 1);
    }

    __device__ __forceinline__ static bool has_beyond(const GradLogitsParams &params, const float *z) {
        return !Softcap<Config>::of_products(params).is_within(Softcap<Config>::largest_magnitude(z, unroll_chunk));
    }

    // Work that few warps need. Stores the target's derivative, which needs coefficients of the row that no other logit does. Then sets the target's logit
    // and those of columns past the vocabulary to -inf, so that their derivatives become 0; with a softcap, which maps -inf to a finite number, to 0, and
    // clear() sets the derivatives. The logits of rows without a target, past the last valid row, become 0; such a row's coefficients are 0.
    __device__ __forceinline__ void take_out(const GradLogitsParams &params, float *z, ValuesInMemory<unroll_chunk> &in_memory, const float (&scale)[2],
                                             int column) const {
        constexpr float nothing = Config::has_softcap ? 0 : -infinity;
        in_memory.lay_down(z);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int i = in_memory.place_of(h, columns_left(column, row[h].target));
            if (i < 0) continue;
            int at = first_row + lane_index_reread() / 4 + 8 * h;
            params.targets[at].derivative = target_derivative(params, in_memory.value[i], scale[h], params.gradient[at]);
            in_memory.value[i] = nothing;
        }
        if (has_masked(params, column)) {
            int left = columns_left(column, params.vocab);
            in_memory.visit([&](float &value, int j, int place) {
                if (row[j / 2].target < 0) value = 0;
                else if (place >= left) value = nothing;
            });
        }
        in_memory.take_up(z);
    }

    // Whether the chunk has columns past the vocabulary, or rows past the last valid one, which have no target.
    __device__ __forceinline__ bool has_masked(const GradLogitsParams &params, int column) const {
        return columns_left(column, params.vocab) <= offset(unroll_chunk - 1) || row[0].target < 0 || row[1].target < 0;
    }

    // Sets the derivatives of these, and of the targets, to 0, where softcap or label smoothing would have made them something else.
    __device__ __forceinline__ void clear(const GradLogitsParams &params, float *z, ValuesInMemory<unroll_chunk> &in_memory, int column) const {
        in_memory.lay_down(z);
        int left = columns_left(column, params.vocab), target[2] = {columns_left(column, row[0].target), columns_left(column, row[1].target)};
        in_memory.visit([&](float &value, int j, int place) {
            if (row[j / 2].target < 0 || place >= left || place == target[j / 2]) value = 0;
        });
        in_memory.take_up(z);
    }

    __device__ __forceinline__ static void add_bias(const GradLogitsParams &params, float *z, int column) {
        auto bias = (const typename Config::bias_element *)params.bias + column;
        int left = columns_left(column, params.vocab);
#pragma unroll
        for (int i = 0; i < unroll_chunk; i += 4) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float b = offset(i + c) < left ? to_float(bias[offset(i + c)]) : 0;
                z[i + c] = fmaf(z[i + c], Config::correction, b);
                z[i + 2 + c] = fmaf(z[i + 2 + c], Config::correction, b);
            }
        }
    }

    // The part of the derivative that is proportional to p: 2^x (prob_coefficient + entropy_coefficient x). It is 0 where p is, as 2^x is for x below -126.
    template <bool has_large> __device__ __forceinline__ static float prob_derivative(float z, float scale, const RowGradient &row) {
        bool large = has_large && is_large(row.offset);
        if constexpr (has_large) {
            z = large ? finite_product(z, scale) : z;
            scale = large ? 1 : scale;
        }
        float x = fmaf(z, scale, -row.offset), factor = row.prob_coefficient;
        if constexpr (has_large) x = large && x > 0 ? 0 : x; // only the rounding of an lse from the caller, which may be many powers, makes x > 0
        if constexpr (Config::wants_entropy) factor = fmaf(row.entropy_coefficient, fmaxf(x, -150.0f), factor);
        return exp2_approximate(x) * factor;
    }

    // Adds the derivative of the sum of all logits (label smoothing), times the class weight of column v.
    __device__ __forceinline__ static float with_uniform(const GradLogitsParams &params, float derivative, const RowGradient &row, int v) {
        if constexpr (!Config::wants_logit_sum) return derivative;
        float weight = 1;
        if constexpr (Config::has_class_weights)
            weight = is_before(v, params.vocab) ? to_float(((const typename Config::class_element *)params.class_weights)[v]) : 0;
        return fmaf(row.uniform_coefficient, weight, derivative);
    }

    // The derivative by a logit other than the target's. is_any: the row's offset may be large, or the logit beyond the softcap's polynomial.
    template <bool is_any>
    __device__ __forceinline__ static float derivative(const GradLogitsParams &params, float z, float scale, const RowGradient &row, int v) {
        if constexpr (Config::has_softcap) {
            auto softcap = Softcap<Config>::of_products(params);
            float slope, capped = is_any ? softcap.of(z, slope) : softcap.of_within(z, slope);
            return with_uniform(params, prob_derivative<is_any>(capped, scale, row), row, v) * slope;
        }
        return with_uniform(params, prob_derivative<is_any>(z, scale, row), row, v);
    }

    // The derivative by the target's logit.
    __device__ __forceinline__ static float target_derivative(const GradLogitsParams &params, float z, float scale, const RowGradient &row) {
        float slope = 1;
        if constexpr (Config::has_softcap) z = Softcap<Config>::of_products(params).of(z, slope);
        float of_p = row.is_whole ? 0 : prob_derivative<true>(z, scale, row);
        return (with_uniform(params, of_p, row, row.target) + row.target_coefficient) * slope;
    }
};
