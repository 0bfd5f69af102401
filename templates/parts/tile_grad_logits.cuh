// The backward's epilogue: from accumulator tiles to the loss' derivative by each logit.
//
// The derivative by the target's logit leaves for RowTarget (params/rows.h), and is 0 here.
// Columns past the vocabulary come out as 0: their products are 0 (or the bias of nothing) and their gradients are set.
// Config: fragment_columns, has_bias, bias_element, has_softcap, wants_entropy, wants_logit_sum, has_class_weights, class_element, correction
template <class Config> struct TileGradLogits {
    static constexpr int count = Config::fragment_columns / 2; // accumulators
    static constexpr int unroll_chunk = 16;                    // shorter ones' branches become predicates, and all chunks one again
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
        bool has_large = warp_any(is_large(row[0].offset) || is_large(row[1].offset));
        if constexpr (Config::has_bias || Config::has_softcap) { // which come before
            if (has_large) return transform_chunks<true>(params, z, scale, first_column);
        } else {
            if (rarely(has_large)) bound_large(z, scale);
        }
        transform_chunks<false>(params, z, scale, first_column);
    }

    // Of large rows: the logit with a scale of 1, and not beyond the offset, as the rounding of a given lse, which may be many powers, would have it. So
    // one copy of the loop over the derivatives does: copies of it are most of what the kernel takes to compile.
    __device__ __forceinline__ void bound_large(float (&z)[count], float (&scale)[2]) const {
#pragma unroll
        for (int i = 0; i < count; i++) {
            int h = (i >> 1) & 1;
            if (!is_large(row[h].offset)) continue;
            float z2 = finite_product(z[i], scale[h]);
            z[i] = z2 > row[h].offset ? row[h].offset : z2;
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (is_large(row[h].offset)) scale[h] = 1;
    }

    // has_large: a row may have logits as row_offset.cuh means them.
    template <bool has_large>
    __device__ __forceinline__ void transform_chunks(const GradLogitsParams &params, float (&z)[count], const float (&scale)[2], int first_column) const {
        int column = column_at(first_column, 2 * (lane_index() % 4)); // the thread's first
        bool has_targets = false;
#pragma unroll
        for (int i = 0; i < count; i += unroll_chunk) has_targets |= transform_chunk<has_large>(params, &z[i], scale, column_at(column, offset(i)));
        if (rarely(has_targets)) leave_targets(params, scale, column);
    }

    // The branches in it are where the compiler cannot interleave one chunk with the next: over all accumulators it takes three
    // times as long, and more registers than there are. Whether the warp has targets in it.
    template <bool has_large>
    __device__ __forceinline__ bool transform_chunk(const GradLogitsParams &params, float *z, const float (&scale)[2], int column) const {
        int target[2] = {columns_left(column, row[0].target), columns_left(column, row[1].target)};
        if constexpr (Config::has_bias) add_bias(params, z, column);
        bool has_targets = take_targets(params, z, target);
#pragma unroll
        for (int i = 0; i < unroll_chunk; i++) {
            int h = (i >> 1) & 1;
            z[i] = derivative<has_large>(params, z[i], scale[h], row[h], column_at(column, offset(i)));
        }
        // The targets' logits are -inf here, whose derivative is 0 by itself in all other kernels.
        if constexpr (Config::has_softcap || Config::wants_logit_sum)
            if (has_targets) clear_targets(z, target);
        mask(z, columns_left(column, params.vocab));
        return has_targets;
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

    // softcap(z) and its slope, 1 - tanh^2.
    __device__ __forceinline__ static float capped(const GradLogitsParams &params, float z, float &slope) {
        return rounded_product(params.softcap, hyperbolic_tangent(z * (params.inverse_softcap * (Config::has_bias ? 1 : Config::correction)), slope));
    }

    // By a logit that is not the target's.
    template <bool has_large>
    __device__ __forceinline__ static float derivative(const GradLogitsParams &params, float z, float scale, const RowGradient &row, int v) {
        if constexpr (Config::has_softcap) {
            float slope, cap = capped(params, z, slope);
            return with_uniform(params, prob_derivative<has_large>(cap, scale, row), row, v) * slope;
        }
        return with_uniform(params, prob_derivative<has_large>(z, scale, row), row, v);
    }

    // By the target's.
    __device__ __forceinline__ static float target_derivative(const GradLogitsParams &params, float z, float scale, const RowGradient &row) {
        float slope = 1;
        if constexpr (Config::has_softcap) z = capped(params, z, slope);
        float of_p = row.is_whole ? 0 : prob_derivative<true>(z, scale, row);
        return (with_uniform(params, of_p, row, row.target) + row.target_coefficient) * slope;
    }

    // Few warps meet one: those return true. The logits wait where their derivatives will lie.
    __device__ __forceinline__ bool take_targets(const GradLogitsParams &params, float *z, const int (&target)[2]) const {
        if (!warp_any((unsigned)target[0] <= offset(unroll_chunk - 1) || (unsigned)target[1] <= offset(unroll_chunk - 1))) return false;
        float logit[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < unroll_chunk; i++) {
            int h = (i >> 1) & 1;
            if (target[h] != offset(i)) continue;
            logit[h] = z[i];
            z[i] = -infinity;
        }
        int at = first_row + lane_index_reread() / 4;
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (is_mine(target[h], unroll_chunk)) params.targets[at + 8 * h].derivative = logit[h];
        return true;
    }

    // Behind the tile, by the threads that took them: once for all its chunks. What only they need of the rows is read here.
    __device__ __forceinline__ void leave_targets(const GradLogitsParams &params, const float (&scale)[2], int column) const {
        int at = first_row + lane_index_reread() / 4;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (!is_mine(columns_left(column, row[h].target), count)) continue;
            float &derivative = params.targets[at + 8 * h].derivative;
            derivative = target_derivative(params, derivative, scale[h], params.gradient[at + 8 * h]);
        }
    }

    __device__ __forceinline__ static void clear_targets(float *z, const int (&target)[2]) {
#pragma unroll
        for (int i = 0; i < unroll_chunk; i++)
            if (target[(i >> 1) & 1] == offset(i)) z[i] = 0;
    }

    // Whether the column at this distance is one of the thread's `some` accumulators' of a row and the next.
    __device__ __forceinline__ static bool is_mine(int distance, int some) { return (unsigned)distance <= offset(some - 1) && distance % 8 < 2; }

    // Columns past the vocabulary, whose products are of nothing; and behind the last valid row, rows without a target: 0 whatever the
    // bias holds.
    __device__ __forceinline__ void mask(float *z, int left) const {
        bool is_row[2] = {row[0].target >= 0, row[1].target >= 0};
        if (!warp_any(left <= offset(unroll_chunk - 1) || !is_row[0] || !is_row[1])) return;
#pragma unroll
        for (int i = 0; i < unroll_chunk; i++)
            if (!is_row[(i >> 1) & 1] || offset(i) >= left) z[i] = 0;
    }
};
