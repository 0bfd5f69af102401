// fusedlogp linear_logp_shard_targets.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: entry[row] = target[row] - the shard's first, or why the target has none there
// Grid: ceil(N / threads) blocks
// Cluster: none
// Block: 256 threads: a row each
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
#line 1 "templates/parts/target.cuh"
#line 1 "templates/any/linear_logp_shard_targets.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_linear_logp_shard_targets_sm_90a(
    const __grid_constant__ ShardTargetsParams params) {
    linear_logp_shard_targets<Config>(params);
}
