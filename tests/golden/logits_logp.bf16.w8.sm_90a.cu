// fusedlogp logits_logp.bf16.w8.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: logp[row] = z[target] - log(sum_v exp(z[v])), lse, entropy and argmax where asked; logits [N, V] bf16, a warp holds 2048 at a time
// Grid: persistent: rows, or with few rows their parts, in turn
// Cluster: none
// Block: 256 threads: teams of warps take a row; its segments go round robin to them
// Shared memory: 32928 bytes
//     32864  sums: of 512 segments of 8 rows each, offset and sum, moment and best
//        64  barriers, and what fills up to a multiple of 16
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    static constexpr int segment_vectors = 8;
    static constexpr int cluster = 1;
    static constexpr int vector_bytes = 16;
    static constexpr bool has_softcap = false;
    static constexpr bool has_entropy = false;
    static constexpr bool wants_argmax = false;
    static constexpr bool rewrites = false;
    static constexpr bool holds_row = false;
    static constexpr bool is_staged = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 32928;
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
#line 1 "templates/sm90a/mbarrier.cuh"
#line 1 "templates/parts/logits_in_registers.cuh"
#line 1 "templates/parts/logits_shared.cuh"
#line 1 "templates/any/logits_logp.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 3)
flp_logits_logp_bf16_w8_sm_90a(
    const __grid_constant__ LogitsLogpParams params) {
    logits_logp<Config>(params);
}
