// fusedlogp linear_logp_backward_other_shards.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: targets of other shards become entry 0 with a derivative of 0
// Grid: any number of blocks
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
#line 1 "templates/any/linear_logp_backward_other_shards.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_linear_logp_backward_other_shards_sm_80(
    const __grid_constant__ OtherShardsParams params) {
    linear_logp_backward_other_shards<Config>(params);
}
