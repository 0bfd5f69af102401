// fusedlogp logits_logp_cluster.f16.c16.w4.entropy.vec2.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: logp[row] = z[target] - log(sum_v exp(z[v])), lse, entropy and argmax where asked; logits [N, V] f16, a warp holds 2048 at a time
// Grid: a cluster takes a row at a time
// Cluster: 16 blocks
// Block: 128 threads: each warp of the cluster sums segments; the first warp of its first block merges them
// Shared memory: 6176 bytes
//      6160  sums: of 512 segments of 1 row each, offset and sum, moment and best
//        16  barriers, and what fills up to a multiple of 16
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = f16;
    static constexpr int segment_vectors = 8;
    static constexpr int cluster = 16;
    static constexpr int vector_bytes = 2;
    static constexpr bool has_softcap = false;
    static constexpr bool has_entropy = true;
    static constexpr bool wants_argmax = false;
    static constexpr bool rewrites = false;
    static constexpr bool holds_row = false;
    static constexpr bool is_staged = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 6176;
};
#line 1 "templates/params/tally.h"
#line 1 "templates/params/logits_logp.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/tally.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/streaming.cuh"
#line 1 "templates/parts/vector.cuh"
#line 1 "templates/parts/shifted_vectors.cuh"
#line 1 "templates/parts/largest.cuh"
#line 1 "templates/parts/target_share.cuh"
#line 1 "templates/parts/logit_bounds.cuh"
#line 1 "templates/parts/logits_row.cuh"
#line 1 "templates/parts/logits_segment.cuh"
#line 1 "templates/parts/logits_merge.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/sm90a/mbarrier.cuh"
#line 1 "templates/sm90a/cluster.cuh"
#line 1 "templates/parts/logits_shared.cuh"
#line 1 "templates/sm90a/logits_logp_cluster.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 3) __cluster_dims__(16, 1, 1)
flp_logits_logp_cluster_f16_c16_w4_entropy_vec2_sm_90a(
    const __grid_constant__ LogitsLogpParams params) {
    logits_logp_cluster<Config>(params);
}
