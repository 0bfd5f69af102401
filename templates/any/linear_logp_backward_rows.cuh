// Prepares linear_logp's backward: which rows count, in what order (places), and what each row's logits must be multiplied by (differentiates).
// One block places; any number of blocks differentiate.
//
// A row counts when its target is neither ignored nor outside the vocabulary. Rows that count stand close together in what follows, so
// the others cost nothing and whatever their hidden holds goes nowhere. Where the derivatives are stored in fp16 (scales), they are
// multiplied by a power of two that takes the largest upstream gradient, which none of them exceeds, to 2^14 .. 2^15, and the products by its
// inverse; below 2^-29 of that gradient they lose digits.
// Config: threads
template <class Config> struct BackwardRows {
    static constexpr int warps = Config::threads / 32;
    const BackwardRowsParams &params;

    __device__ __forceinline__ i64 target(int i) const { return load_target(params.target, params.target_bytes, i); }
    __device__ __forceinline__ bool counts(int i) const {
        i64 t = target(i);
        return !is_ignored(params, t) && t >= 0 && t < params.vocab;
    }
    __device__ __forceinline__ static float optional(const float *from, int i) { return from ? from[i] : 0; }
    __device__ __forceinline__ float inverse_temperature(int i) const {
        return params.row_temperature ? 1 / params.row_temperature[i] : params.inverse_temperature;
    }

    // The entropy's factor meets log p, of which 64 bits are taken to be enough.
    __device__ __forceinline__ float largest_gradient(float (&shared)[warps]) const {
        float largest = 0;
        for (int i = threadIdx.x; i < params.rows; i += Config::threads) {
            if (!counts(i)) continue;
            float g = fabsf(params.g_logp[i]) + fabsf(optional(params.g_lse, i)) + fabsf(optional(params.g_sum, i)) + 64 * fabsf(optional(params.g_entropy, i));
            largest = fmaxf(largest, g * inverse_temperature(i));
        }
        for (int m = 16; m > 0; m /= 2) largest = fmaxf(largest, shuffle_xor(largest, m));
        int warp = warp_index();
        if (lane_index() == 0) shared[warp] = largest;
        block_barrier();
        for (int w = 0; w < warps; w++) largest = fmaxf(largest, shared[w]);
        return largest;
    }

    __device__ __forceinline__ float choose_factor(float (&shared)[warps]) const {
        if (!params.scales) return 1;
        float largest = largest_gradient(shared);
        if (!(largest > 0 && largest < infinity)) return 1;
        int exponent = 14 - (((int)__float_as_uint(largest) >> 23) - 127);
        exponent = min(max(exponent, -100), 100);
        return __uint_as_float((u32)(exponent + 127) << 23);
    }

    __device__ __forceinline__ RowGradient gradient(int i, float factor) const {
        constexpr float log2_e = 1.4426950408889634f;
        float inverse = inverse_temperature(i), lse = params.lse[i];
        float g_logp = params.g_logp[i] * factor, g_lse = optional(params.g_lse, i) * factor, g_entropy = optional(params.g_entropy, i) * factor;
        RowGradient row = {};
        row.scale = log2_e * inverse;
        row.lse2 = lse * log2_e;
        row.direct = g_logp * inverse;
        row.spread = (g_lse - g_logp) * inverse;
        if (params.g_entropy) {
            row.spread -= g_entropy * params.entropy[i] * inverse;
            row.tilt = -g_entropy * ln_2 * inverse;
        }
        row.level = optional(params.g_sum, i) * factor * inverse;
        row.target = (int)target(i);
        return row;
    }

    // Of the block's threads before this one, how many say so; total: of all.
    __device__ __forceinline__ static int count_before(bool condition, int (&shared)[warps], int &total) {
        u32 votes = warp_ballot(condition);
        int warp = warp_index();
        if (lane_index() == 0) shared[warp] = __popc(votes);
        block_barrier();
        int before = __popc(votes & ((1u << lane_index()) - 1));
        total = 0;
        for (int w = 0; w < warps; w++) {
            before += w < warp ? shared[w] : 0;
            total += shared[w];
        }
        block_barrier();
        return before;
    }

    __device__ __forceinline__ void note_error(int i) const {
        if (params.target_errors) tally_bad_target(params.target_errors, i); // else they are counted already
    }

    // Which rows count, close together in the order in which they stand.
    __device__ __forceinline__ void place_rows(int (&shared)[warps]) const {
        int done = 0, total;
        for (int first = 0; first < params.rows; first += Config::threads) {
            int i = first + threadIdx.x;
            bool is_row = i < params.rows, counted = is_row && counts(i);
            int at = done + count_before(counted, shared, total);
            if (counted) params.row[at] = i;
            else if (is_row && !is_ignored(params, target(i))) note_error(i);
            if (is_row) params.place[i] = counted ? at : -1;
            done += total;
        }
        if (threadIdx.x == 0) *params.count = done;
        count_chunks(done);
        block_barrier();
    }

    __device__ __forceinline__ void count_chunks(int count) const {
        if (params.chunk_rows == 0) return;
        for (int c = threadIdx.x; c < ceil_div(params.rows, params.chunk_rows); c += Config::threads)
            params.chunk_counts[c] = min(max(count - c * params.chunk_rows, 0), params.chunk_rows);
    }

    __device__ __forceinline__ void differentiate(float factor) const {
        int count = *params.count, stride = gridDim.x * Config::threads, first = blockIdx.x * Config::threads + threadIdx.x;
        for (int at = first; at < count; at += stride) {
            RowGradient row = gradient(params.row[at], factor);
            params.gradient[at] = row;
            params.targets[at].target = row.target;
            if (params.row_factor) complete_stash(at, row);
        }
        // The tile kernels work on whole blocks of rows.
        for (int at = count + first; at < (count + 255) / 256 * 256; at += stride) params.gradient[at] = RowGradient{0, 0, 0, 0, 0, -1};
        if (first != 0) return;
        *params.factor = factor;
        *params.inverse_factor = 1 / factor;
    }

    // With a stash of e[v] = 2^(z2[v] - k), a row's derivatives are w e[v], w the row's factor, but for the target's.
    __device__ __forceinline__ void complete_stash(int at, const RowGradient &row) const {
        params.row_factor[at] = row.spread * exp2f(params.stash_offset[at] - row.lse2);
        if (row.target >= params.stash_columns) return;
        params.targets[at].derivative = fmaf(row.spread, exp2f(params.target_logit[at] - row.lse2), row.direct);
        params.stash[at * params.stash_stride + row.target] = {0};
    }
};

template <class Config> struct BackwardRowsShared {
    float largest[BackwardRows<Config>::warps];
    int votes[BackwardRows<Config>::warps];
};

template <class Config> __device__ __forceinline__ void linear_logp_backward_rows(const BackwardRowsParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(BackwardRowsShared<Config> *)dynamic_shared;
    static_assert(sizeof(shared) == Config::shared_bytes, "gen/kernels/linear_logp_backward_rows.lua disagrees");
    wait_for_previous_kernel();
    allow_next_kernel();
    BackwardRows<Config> rows = {params};
    if (params.places) rows.place_rows(shared.votes);
    if (params.differentiates) rows.differentiate(rows.choose_factor(shared.largest));
}
