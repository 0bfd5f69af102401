// fusedlogp logits_logp_combine.f16.w8.argmax.entropy.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: logp[row] = z[target] - log(sum_v exp(z[v])), lse, entropy and argmax where asked, from the sums of segments that several blocks have
//   read; logits [N, V] f16, a warp holds 2048 at a time
// Grid: one warp a row
// Cluster: none
// Block: 256 threads: a row each warp
// Shared memory: none
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = f16;
    static constexpr int segment_vectors = 8;
    static constexpr int cluster = 1;
    static constexpr int vector_bytes = 16;
    static constexpr bool has_softcap = false;
    static constexpr bool has_entropy = true;
    static constexpr bool wants_argmax = true;
    static constexpr bool rewrites = false;
    static constexpr bool holds_row = false;
    static constexpr bool is_staged = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
};
#line 1 "templates/params/tally.h"
#line 1 "templates/params/logits_logp.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/tally.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/streaming.cuh"
#line 1 "templates/parts/vector.cuh"
#line 1 "templates/parts/largest.cuh"
#line 1 "templates/parts/target_share.cuh"
#line 1 "templates/parts/logit_bounds.cuh"
#line 1 "templates/parts/logits_row.cuh"
#line 1 "templates/parts/logits_segment.cuh"
#line 1 "templates/parts/logits_merge.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/any/logits_logp_combine.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_logits_logp_combine_f16_w8_argmax_entropy_sm_90a(
    const __grid_constant__ LogitsLogpParams params) {
    logits_logp_combine<Config>(params);
}
