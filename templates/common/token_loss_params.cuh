// What the kernel of token losses takes. The host half, with every field explained, is runtime/ops/linear_cross_entropy_params.h.
// KEEP IN STEP: token loss parameters.
// Config: none
struct TokenLossParams {
    const void *target;
    const float *logp, *lse, *entropy, *logit_sum;
    const void *class_weights;
    const float *token_weights;
    const float *g_loss;
    const float *input[8];
    float parameter[8];
    float *loss;
    float *g_logp, *g_lse, *g_entropy, *g_sum;
    i64 ignore_index;
    int rows, vocab, target_bytes;
    int class_weight_dtype;
    int reduces, divides;
    const int *place;
    int first_place, places;
    int adds, ignores;
};
static_assert(sizeof(TokenLossParams) == 256, "runtime/ops/linear_cross_entropy_params.h disagrees");

// What a token loss sees of its row, and what it makes of it.
struct TokenLossRow {
    float logp, lse, entropy, uniform, class_weight;
    float input[8];
};

struct TokenLossResult {
    float loss, by_logp, by_lse, by_entropy, by_uniform;
};

// Of two equal numbers the first; NaN if one is.
__device__ __forceinline__ float token_minimum(float a, float b) { return b < a || b != b ? b : a; }
__device__ __forceinline__ float token_maximum(float a, float b) { return b > a || b != b ? b : a; }
