// fusedlogp linear_logp_partials.bm8.argmax.entropy.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: of each row the offset k, S = sum_v 2^(z2[v] - k) without the target, the target's logit and what else is asked, from the splits' [N,
//   splits]
// Grid: ceil(N / block_rows) blocks
// Cluster: none
// Block: 256 threads: one warp a row; lane l adds splits l, l + 32, ..., then the lanes merge pairwise
// Shared memory: none
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    static constexpr bool wants_argmax = true;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/linear_logp.h"
#line 1 "templates/params/linear_logp_shard.h"
#line 1 "templates/parts/target.cuh"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/tally.cuh"
#line 1 "templates/parts/logit_bounds.cuh"
#line 1 "templates/parts/row_offset.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/any/linear_logp_combine.cuh"
#line 1 "templates/any/linear_logp_partials.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_linear_logp_partials_bm8_argmax_entropy_sm_90a(
    const __grid_constant__ LinearPartialsParams params) {
    linear_logp_partials<Config>(params);
}
