// fusedlogp logits_logp_fused.f32.w4.softcap.entropy.vec4.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: logp[row] = z[target] - log(sum_v exp(z[v])), lse, entropy and argmax where asked; grad_logits[row, v] = g_logp ([v = target] - p[v]) and
//   what g_lse and g_entropy add; logits [N, V] f32, softcapped, a warp holds 1024 at a time
// Grid: persistent: rows in turn
// Cluster: none
// Block: 128 threads: teams of warps take a row each
// Shared memory: 28688 bytes
//     12304  sums: of 512 segments of 2 rows each, offset and sum, moment and best
//     16384  kept: segments of a row that stay here until its sums have met
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = float;
    static constexpr int segment_vectors = 8;
    static constexpr int cluster = 1;
    static constexpr int vector_bytes = 4;
    static constexpr bool has_softcap = true;
    static constexpr bool has_entropy = true;
    static constexpr bool wants_argmax = false;
    static constexpr bool rewrites = true;
    static constexpr bool holds_row = false;
    static constexpr bool is_staged = false;
    static constexpr int kept_segments = 1;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 28688;
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
#line 1 "templates/parts/magnitudes.cuh"
#line 1 "templates/parts/local_memory.cuh"
#line 1 "templates/parts/softcap.cuh"
#line 1 "templates/parts/logits_row.cuh"
#line 1 "templates/parts/logits_segment.cuh"
#line 1 "templates/parts/segment_beyond_softcap.cuh"
#line 1 "templates/parts/logits_merge.cuh"
#line 1 "templates/parts/logits_shared.cuh"
#line 1 "templates/parts/logits_backward.cuh"
#line 1 "templates/any/logits_logp_fused.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 3)
flp_logits_logp_fused_f32_w4_softcap_entropy_vec4_sm_80(
    const __grid_constant__ LogitsLogpParams params) {
    logits_logp_fused<Config>(params);
}
