// fusedlogp logits_logp_fused_cluster.bf16.c4.w20.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    static constexpr int segment_vectors = 8;
    static constexpr int shared_segments = 512;
    static constexpr int cluster = 4;
    static constexpr int vector_bytes = 16;
    static constexpr bool has_softcap = false;
    static constexpr bool has_entropy = false;
    static constexpr bool wants_argmax = false;
    static constexpr bool rewrites = true;
    static constexpr bool holds_row = false;
    static constexpr int slots = 50;
    static constexpr int records = 8;
    static constexpr int threads = 640;
    static constexpr int shared_bytes = 222272;
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
#line 1 "templates/sm90a/bulk_copy.cuh"
#line 1 "templates/common/logits_shared.cuh"
#line 1 "templates/common/logits_gradient.cuh"
#line 1 "templates/sm90a/logits_logp_fused_cluster.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(640, 1) __cluster_dims__(4, 1, 1)
flp_logits_logp_fused_cluster_bf16_c4_w20_sm_90a(const __grid_constant__ LogitsLogpParams params) {
    logits_logp_fused_cluster<Config>(params);
}
