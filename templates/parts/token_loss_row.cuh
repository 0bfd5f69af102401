// What the emitted TokenLoss is made of.
// Config: none

// What a token loss sees of its row, and what it makes of it.
struct TokenLossRow {
    float logp, lse, entropy, uniform, class_weight;
    float input[8];
};

struct TokenLossResult {
    float loss, by_logp, by_lse, by_entropy, by_uniform;
};

// The first of two equal numbers; NaN if one is.
__device__ __forceinline__ float token_minimum(float a, float b) { return b < a || b != b ? b : a; }
__device__ __forceinline__ float token_maximum(float a, float b) { return b > a || b != b ? b : a; }
