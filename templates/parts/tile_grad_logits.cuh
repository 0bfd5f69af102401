// The backward's epilogue: from accumulator tiles to the loss' derivative by each logit.
//
// The derivative by the target's logit leaves for RowTarget (params/rows.h), and is 0 here.
// Columns past the vocabulary come out as 0: their products are 0 (or the bias of nothing) and their gradients are set.
// Config: fragment_columns, has_bias, bias_element, has_softcap, wants_entropy, wants_logit_sum, has_class_weights, class_element, correction
// softcap.cuh, emitted where Config::has_softcap.
template <class Config> struct Softcap;

template <class Config> struct TileGradLogits {
    static constexpr int count = Config::fragment_columns / 2; // accumulators
    // What options ask of each logit goes by chunks: the branch in each is where the compiler cannot interleave one chunk with the next, for which there are
    // no registers.
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

    // Accumulator i's column, from the first one on. All comparisons are of this constant with a distance: the columns themselves would
    // need as many registers.
    __device__ __forceinline__ static constexpr int offset(int i) { return (i / 4) * 8 + (i & 1); }

    // z: hidden . weight^T of this warp's rows and the columns from first_column on; becomes the derivative.
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
        bool is_beyond = false; // the softcap, some logit
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
        // The derivatives of what has been taken out are 0 by themselves in all other kernels.
        if constexpr (Config::has_softcap || Config::wants_logit_sum) {
            if (is_special) clear(params, z, in_memory, column);
        }
    }

    // Whether the thread's columns have a row's target among them.
    __device__ __forceinline__ bool is_near_target(int column) const {
        return (unsigned)columns_left(column, row[0].target) <= offset(unroll_chunk - 1) ||
               (unsigned)columns_left(column, row[1].target) <= offset(unroll_chunk - 1);
    }

    __device__ __forceinline__ static bool has_beyond(const GradLogitsParams &params, const float *z) {
        return !Softcap<Config>::of_products(params).is_within(Softcap<Config>::largest_magnitude(z, unroll_chunk));
    }

    // What few warps meet. The target's derivative leaves, by what only it needs of the row; its logit and those of columns past the vocabulary become -inf,
    // of which nothing is left (with a softcap, which makes something of it, any number does: clear), and 0 those of rows without a target, whose
    // coefficients are 0.
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

    // Columns past the vocabulary, whose products are of nothing; and behind the last valid row, rows without a target.
    __device__ __forceinline__ bool has_masked(const GradLogitsParams &params, int column) const {
        return columns_left(column, params.vocab) <= offset(unroll_chunk - 1) || row[0].target < 0 || row[1].target < 0;
    }

    // These and the targets: 0 where softcap and smoothing would make something of them.
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

    // p's part, 2^x (prob_coefficient + entropy_coefficient x), which is 0 where p is: 2^x is from x = -126 down.
    template <bool has_large> __device__ __forceinline__ static float prob_derivative(float z, float scale, const RowGradient &row) {
        bool large = has_large && is_large(row.offset);
        if constexpr (has_large) {
            z = large ? finite_product(z, scale) : z;
            scale = large ? 1 : scale;
        }
        float x = fmaf(z, scale, -row.offset), factor = row.prob_coefficient;
        if constexpr (has_large) x = large && x > 0 ? 0 : x; // by the rounding of a given lse, which may be many powers
        if constexpr (Config::wants_entropy) factor = fmaf(row.entropy_coefficient, fmaxf(x, -150.0f), factor);
        return exp2_approximate(x) * factor;
    }

    // And what a loss of all logits adds, by the weight of column v's class.
    __device__ __forceinline__ static float with_uniform(const GradLogitsParams &params, float derivative, const RowGradient &row, int v) {
        if constexpr (!Config::wants_logit_sum) return derivative;
        float weight = 1;
        if constexpr (Config::has_class_weights)
            weight = is_before(v, params.vocab) ? to_float(((const typename Config::class_element *)params.class_weights)[v]) : 0;
        return fmaf(row.uniform_coefficient, weight, derivative);
    }

    // By a logit that is not the target's. is_any: of a large row, or beyond the softcap.
    template <bool is_any>
    __device__ __forceinline__ static float derivative(const GradLogitsParams &params, float z, float scale, const RowGradient &row, int v) {
        if constexpr (Config::has_softcap) {
            auto softcap = Softcap<Config>::of_products(params);
            float slope, capped = is_any ? softcap.of(z, slope) : softcap.of_within(z, slope);
            return with_uniform(params, prob_derivative<is_any>(capped, scale, row), row, v) * slope;
        }
        return with_uniform(params, prob_derivative<is_any>(z, scale, row), row, v);
    }

    // By the target's.
    __device__ __forceinline__ static float target_derivative(const GradLogitsParams &params, float z, float scale, const RowGradient &row) {
        float slope = 1;
        if constexpr (Config::has_softcap) z = Softcap<Config>::of_products(params).of(z, slope);
        float of_p = row.is_whole ? 0 : prob_derivative<true>(z, scale, row);
        return (with_uniform(params, of_p, row, row.target) + row.target_coefficient) * slope;
    }
};
