// fusedlogp logits_logp_fused_cluster.bf16.c4.w20.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: logp[row] = z[target] - log(sum_v exp(z[v])), lse, entropy and argmax where asked; grad_logits[row, v] = g_logp ([v = target] - p[v]) and
//   what g_lse and g_entropy add; logits [N, V] bf16, a warp holds 2048 at a time
// Grid: persistent: a cluster takes a row at a time
// Cluster: 4 blocks
// Block: 640 threads: 19 warps sum segments and write gradients; the last one fetches rows to come and merges sums
// Shared memory: 220240 bytes
//    202752  slots: segments that the copy engine brings
//     16432  sums: of 512 segments of 4 rows each, offset and sum, moment and best
//       448  records: of rows under way
//       608  barriers, and what fills up to a multiple of 16
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    static constexpr int segment_vectors = 8;
    static constexpr int cluster = 4;
    static constexpr int vector_bytes = 16;
    static constexpr bool has_softcap = false;
    static constexpr bool has_entropy = false;
    static constexpr bool wants_argmax = false;
    static constexpr bool rewrites = true;
    static constexpr bool holds_row = false;
    static constexpr bool is_staged = true;
    static constexpr int slots = 48;
    static constexpr int records = 8;
    static constexpr int threads = 640;
    static constexpr int shared_bytes = 220240;
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
#line 1 "templates/sm90a/mbarrier.cuh"
#line 1 "templates/sm90a/tma.cuh"
#line 1 "templates/sm90a/cluster.cuh"
#line 1 "templates/sm90a/logits_slot.cuh"
#line 1 "templates/parts/logits_shared.cuh"
#line 1 "templates/parts/logits_backward.cuh"
#line 1 "templates/sm90a/logits_logp_fused_cluster.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(640, 1) __cluster_dims__(4, 1, 1)
flp_logits_logp_fused_cluster_bf16_c4_w20_sm_90a(
    const __grid_constant__ LogitsLogpParams params) {
    logits_logp_fused_cluster<Config>(params);
}
