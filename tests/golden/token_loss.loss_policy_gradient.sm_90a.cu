// fusedlogp token_loss.loss_policy_gradient.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: loss[row] of policy_gradient from logp, lse, entropy [N], its derivatives by these, and the sum or mean
// Grid: one block
// Cluster: none
// Block: 1024 threads: each its own rows in turn; sums pairwise, in fp64
// Shared memory: 8192 bytes
//      8192  a sum of each thread
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    static constexpr int threads = 1024;
    static constexpr int shared_bytes = 8192;
};
#line 1 "templates/params/token_loss.h"
#line 1 "templates/parts/target.cuh"
#line 1 "templates/parts/token_loss_row.cuh"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/class_weights.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/parts/late_wait.cuh"
#line 1 "loss"
// The token loss policy_gradient and its derivatives.
struct TokenLoss {
    static constexpr int inputs = 2;
    static constexpr bool uses_entropy = false, uses_uniform = false;
    __device__ __forceinline__ static TokenLossResult evaluate(const TokenLossRow &row, const float *parameter) {
        float v0 = row.logp;
        float v1 = row.input[0];
        float v2 = row.input[1];
        float v3 = parameter[0];
        float v4 = parameter[1];
        float v5 = v0 - v2;
        float v6 = expf(v5);
        float v7 = 1.0f;
        float v8 = v7 - v3;
        float v9 = v7 + v4;
        float v10 = token_maximum(v6, v8);
        float v11 = token_minimum(v10, v9);
        float v12 = -v1;
        float v13 = token_maximum(v1, v12);
        float v14 = v6 * v1;
        float v15 = v11 * v1;
        float v16 = token_minimum(v14, v15);
        float v17 = 0.0f;
        float v18 = v17 < v13 ? v16 : v1;
        float v19 = -v18;
        float v20 = -1.0f;
        float v21 = v17 < v13 ? v20 : v17;
        float v22 = v15 < v14 ? v17 : v21;
        float v23 = v15 < v14 ? v21 : v17;
        float v24 = v23 * v1;
        float v25 = v23 == 0 ? 0 : v24;
        float v26 = v22 * v1;
        float v27 = v22 == 0 ? 0 : v26;
        float v28 = v9 < v10 ? v17 : v25;
        float v29 = v6 < v8 ? v17 : v28;
        float v30 = v27 + v29;
        float v31 = v30 * v6;
        float v32 = v30 == 0 ? 0 : v31;
        return {v19, v32, 0, 0, 0};
    }
};
#line 1 "templates/any/token_loss.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(1024, 1)
flp_token_loss_loss_policy_gradient_sm_90a(
    const __grid_constant__ TokenLossParams params) {
    token_loss<Config>(params);
}
