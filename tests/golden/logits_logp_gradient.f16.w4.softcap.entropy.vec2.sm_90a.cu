// fusedlogp logits_logp_gradient.f16.w4.softcap.entropy.vec2.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: grad_logits[row, v] = g_logp ([v = target] - p[v]) and what g_lse and g_entropy add, from a known lse; logits [N, V] f16, softcapped, a
//   warp holds 2048 at a time
// Grid: persistent: segments in turn
// Cluster: none
// Block: 128 threads: a segment each warp at a time
// Shared memory: none
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = f16;
    static constexpr int segment_vectors = 8;
    static constexpr int cluster = 1;
    static constexpr int vector_bytes = 2;
    static constexpr bool has_softcap = true;
    static constexpr bool has_entropy = true;
    static constexpr bool wants_argmax = false;
    static constexpr bool rewrites = true;
    static constexpr bool holds_row = false;
    static constexpr bool is_staged = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 0;
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
#line 1 "templates/sm90/magnitudes.cuh"
#line 1 "templates/parts/local_memory.cuh"
#line 1 "templates/parts/softcap.cuh"
#line 1 "templates/parts/logits_row.cuh"
#line 1 "templates/parts/logits_segment.cuh"
#line 1 "templates/parts/segment_beyond_softcap.cuh"
#line 1 "templates/parts/logits_merge.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/parts/logits_backward.cuh"
#line 1 "templates/any/logits_logp_gradient.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 3)
flp_logits_logp_gradient_f16_w4_softcap_entropy_vec2_sm_90a(
    const __grid_constant__ LogitsLogpParams params) {
    logits_logp_gradient<Config>(params);
}
