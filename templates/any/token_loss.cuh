// The loss of each row, by the struct TokenLoss that the generator emits before this, its derivatives for the backward, and the reduced loss. Launched with
// one block.
//
// Sums over rows or classes are in fp64 and in a fixed order: each thread adds its own rows in turn, then the threads' sums are added pairwise. Where rows
// are processed in chunks, a launch has those of one chunk, and the chunks' losses are added in order.
// Config: threads, shared_bytes
template <class Config> struct TokenLosses {
    const TokenLossParams &params;
    double *shared; // [threads]

    __device__ __forceinline__ i64 target(int i) const { return load_target(params.target, params.target_bytes, i); }
    __device__ __forceinline__ bool in_vocabulary(i64 t) const { return t >= 0 && t < params.vocab; }
    __device__ __forceinline__ float token_weight(int i) const { return params.token_weights ? params.token_weights[i] : 1; }
    __device__ __forceinline__ float class_weight(i64 v) const { return class_weight_at(params.class_weights, params.class_weight_dtype, v); }

    // factor * value, but 0 for a factor of 0 whatever the value is: what a row of weight 0 holds counts for nothing.
    __device__ __forceinline__ static float scaled(float factor, float value) { return factor == 0 ? 0 : factor * value; }

    // What a row's loss adds to a sum that is multiplied by `factor`, which is 0 where the rows' weights add up to 0. A bad target's NaN remains.
    __device__ __forceinline__ static float counted(double factor, float loss) { return factor == 0 && loss == loss ? 0 : loss; }

    // Whether row i belongs to this launch's chunk. Chunks are of valid rows; the rows that are not valid belong to the first.
    __device__ __forceinline__ bool is_here(int i) const {
        int place = params.packed_index[i];
        return place < 0 ? params.first_packed == 0 : place >= params.first_packed && place - params.first_packed < params.packed_rows;
    }

    // The sum of all threads' values, in every thread.
    __device__ __forceinline__ double add_threads(double value) const {
        shared[threadIdx.x] = value;
#pragma unroll 1
        for (int half = Config::threads / 2; half > 0; half /= 2) {
            block_barrier();
            if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        }
        block_barrier();
        double sum = shared[0];
        block_barrier();
        return sum;
    }

    __device__ __forceinline__ double mean_class_weight() const {
        if (!params.class_weights) return 1;
        double sum = 0;
        for (int v = threadIdx.x; is_before(v, params.vocab); v = column_at(v, Config::threads)) sum += class_weight(v);
        return add_threads(sum) / params.vocab;
    }

    // The factor of the sum of losses: 1, or for a mean the inverse of the sum of the rows' weights.
    __device__ __forceinline__ double reduction_factor() const {
        if (!params.divides) return 1;
        double sum = 0;
#pragma unroll 1
        for (int i = threadIdx.x; i < params.rows; i += Config::threads) {
            i64 t = target(i);
            if (!is_ignored(params, t) && in_vocabulary(t)) sum += (double)token_weight(i) * class_weight(t);
        }
        sum = add_threads(sum);
        return sum == 0 ? 0 : 1 / sum;
    }

    __device__ __forceinline__ TokenLossRow row(int i, i64 t, float class_mean) const {
        TokenLossRow row = {};
        row.logp = params.logp[i];
        row.lse = params.lse[i];
        row.class_weight = class_weight(t);
        if constexpr (TokenLoss::uses_entropy) row.entropy = params.entropy[i];
        if constexpr (TokenLoss::uses_uniform) row.uniform = class_mean * row.lse - params.logit_sum[i] / (float)params.vocab;
#pragma unroll
        for (int k = 0; k < TokenLoss::inputs; k++) row.input[k] = params.input[k][i];
        return row;
    }

    __device__ __forceinline__ void store(int i, float factor, float class_mean, const TokenLossResult &result) const {
        if (!params.g_logp) return;
        params.g_logp[i] = scaled(factor, result.by_logp);
        params.g_lse[i] = scaled(factor, result.by_lse + result.by_uniform * class_mean);
        if constexpr (TokenLoss::uses_entropy)
            if (params.g_entropy) params.g_entropy[i] = scaled(factor, result.by_entropy);
        if constexpr (TokenLoss::uses_uniform)
            if (params.g_sum) params.g_sum[i] = scaled(-factor, result.by_uniform) / (float)params.vocab;
    }

    // Row i's weighted loss; also stores its derivatives. factor: that of the sum of losses.
    __device__ __forceinline__ float loss(int i, double factor, float class_mean) const {
        i64 t = target(i);
        if (is_ignored(params, t)) return 0;
        if (!in_vocabulary(t)) return not_a_number;
        TokenLossResult result = TokenLoss::evaluate(row(i, t, class_mean), params.parameter);
        float weight = token_weight(i), g_loss = params.g_loss ? params.g_loss[params.reduces ? 0 : i] : 1;
        store(i, (float)(factor * weight * g_loss), class_mean, result);
        return scaled(weight, result.loss);
    }

    // It depends on all rows of the call, and so is computed once for all chunks.
    __device__ __forceinline__ double shared_factor() const {
        if (params.first_packed > 0) return *params.sum_factor;
        double factor = reduction_factor();
        if (params.sum_factor && threadIdx.x == 0) *params.sum_factor = factor;
        return factor;
    }

    // Rows from begin to end, among which are all of this launch's chunk. begin is such that a row has the same thread in every launch.
    struct Range {
        int begin, end;
    };
    __device__ __forceinline__ Range range() const {
        if (params.first_packed == 0) return {0, params.rows};
        int count = *params.row_count;
        if (count == 0) return {0, 0};
        return {params.row[0] / Config::threads * Config::threads, params.row[count - 1] + 1};
    }

    __device__ __forceinline__ void run() const {
        double factor = shared_factor(), sum = 0;
        float class_mean = 1;
        if constexpr (TokenLoss::uses_uniform) class_mean = (float)mean_class_weight();
        Range rows = range();
#pragma unroll 1
        for (int i = rows.begin + threadIdx.x; i < rows.end; i += Config::threads) {
            if (!is_here(i)) continue;
            float value = loss(i, factor, class_mean);
            if (params.reduces) sum += counted(factor, value);
            else params.loss[i] = value;
        }
        if (!params.reduces) return;
        sum = add_threads(sum);
        if (threadIdx.x == 0) *params.loss = (params.adds ? *params.loss : 0) + (float)(factor * sum);
    }
};

template <class Config> __device__ __forceinline__ void token_loss(const TokenLossParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(double(*)[Config::threads])dynamic_shared;
    static_assert(sizeof(shared) == Config::shared_bytes, "gen/kernels/token_loss.lua disagrees");
    enter_kernel(params.pdl_wait_last);
    TokenLosses<Config>{params, shared}.run();
    leave_kernel(params.pdl_wait_last);
}
