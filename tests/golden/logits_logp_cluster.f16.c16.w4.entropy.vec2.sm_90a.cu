// fusedlogp logits_logp_cluster.f16.c16.w4.entropy.vec2.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
#line 1 "config"
struct Config {
    using element = f16;
    static constexpr int segment_vectors = 8;
    static constexpr int shared_segments = 512;
    static constexpr int cluster = 16;
    static constexpr int vector_bytes = 2;
    static constexpr bool has_softcap = false;
    static constexpr bool has_entropy = true;
    static constexpr bool wants_argmax = false;
    static constexpr bool rewrites = false;
    static constexpr bool holds_row = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 6176;
};
#line 1 "templates/params/tally.h"
#line 1 "templates/params/logits_logp.h"
#line 1 "templates/any/simt.cuh"
#line 1 "templates/any/tally.cuh"
#line 1 "templates/sm90a/dependent_launch.cuh"
#line 1 "templates/any/convert.cuh"
#line 1 "templates/any/streaming.cuh"
#line 1 "templates/common/vector.cuh"
#line 1 "templates/common/shifted_vectors.cuh"
#line 1 "templates/common/target_share.cuh"
#line 1 "templates/common/logit_bounds.cuh"
#line 1 "templates/common/logits_row.cuh"
#line 1 "templates/common/logits_segment.cuh"
#line 1 "templates/common/logits_merge.cuh"
#line 1 "templates/sm90a/mbarrier.cuh"
#line 1 "templates/sm90a/cluster.cuh"
#line 1 "templates/sm90a/cluster_exchange.cuh"
#line 1 "templates/common/logits_shared.cuh"
#line 1 "templates/sm90a/logits_logp_cluster.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 3) __cluster_dims__(16, 1, 1)
flp_logits_logp_cluster_f16_c16_w4_entropy_vec2_sm_90a(const __grid_constant__ LogitsLogpParams params) {
    logits_logp_cluster<Config>(params);
}
