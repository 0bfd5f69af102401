// Types and functions that the emitted struct TokenLoss uses (gen/token_loss.lua).
// Config: none

// The inputs of a token loss for one row; below, its results: the loss and its derivatives.
struct TokenLossRow {
    float logp, lse, entropy, uniform, class_weight;
    float input[8];
};

struct TokenLossResult {
    float loss, by_logp, by_lse, by_entropy, by_uniform;
};

// The smaller (larger) number, of two equal ones the first; NaN if either is NaN.
__device__ __forceinline__ float token_minimum(float a, float b) { return b < a || b != b ? b : a; }
__device__ __forceinline__ float token_maximum(float a, float b) { return b > a || b != b ? b : a; }
