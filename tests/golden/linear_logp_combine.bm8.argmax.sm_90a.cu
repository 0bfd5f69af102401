// fusedlogp linear_logp_combine.bm8.argmax.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
#line 1 "config"
struct Config {
    static constexpr bool wants_argmax = true;
    static constexpr bool wants_entropy = false;
    static constexpr bool wants_logit_sum = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/linear_logp.h"
#line 1 "templates/common/target.cuh"
#line 1 "templates/any/simt.cuh"
#line 1 "templates/any/tally.cuh"
#line 1 "templates/common/moment.cuh"
#line 1 "templates/common/logit_bounds.cuh"
#line 1 "templates/common/large_logits.cuh"
#line 1 "templates/sm90a/dependent_launch.cuh"
#line 1 "templates/any/linear_logp_combine.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_linear_logp_combine_bm8_argmax_sm_90a(const __grid_constant__ LinearLogpCombineParams params) {
    linear_logp_combine<Config>(params);
}
