// fusedlogp linear_logp_merge_sums.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: the sum of each row's logits from what the shards have left of it, [ranks, N]; lse and entropy 0 of rows that do not count
// Grid: ceil(N / threads) blocks
// Cluster: none
// Block: 256 threads: a row each, the shards in their order
// Shared memory: none
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/linear_logp_shard.h"
#line 1 "templates/params/linear_logp_merge_sums.h"
#line 1 "templates/parts/target.cuh"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/any/linear_logp_merge_sums.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_linear_logp_merge_sums_sm_90a(
    const __grid_constant__ LinearMergeSumsParams params) {
    linear_logp_merge_sums<Config>(params);
}
