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
        float v17 = __uint_as_float(0x02081ceau);
        float v18 = v13 < v17 ? v1 : v16;
        float v19 = -v18;
        float v20 = -1.0f;
        float v21 = 0.0f;
        float v22 = v13 < v17 ? v21 : v20;
        float v23 = v15 < v14 ? v21 : v22;
        float v24 = v15 < v14 ? v22 : v21;
        float v25 = v24 * v1;
        float v26 = v24 == 0 ? 0 : v25;
        float v27 = v23 * v1;
        float v28 = v23 == 0 ? 0 : v27;
        float v29 = v9 < v10 ? v21 : v26;
        float v30 = v6 < v8 ? v21 : v29;
        float v31 = v28 + v30;
        float v32 = v31 * v6;
        float v33 = v31 == 0 ? 0 : v32;
        return {v19, v33, 0, 0, 0};
    }
};
#line 1 "templates/any/token_loss.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(1024, 1)
flp_token_loss_loss_policy_gradient_sm_90a(
    const __grid_constant__ TokenLossParams params) {
    token_loss<Config>(params);
}
