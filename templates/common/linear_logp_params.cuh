// What linear_logp's kernels take. The host half, with every field explained, is runtime/ops/linear_logp_params.h.
// KEEP IN STEP: linear_logp parameters.
// Config: none
struct Split {
    int tiles;
    int splits;
    int big, big_tiles;
};

struct LinearLogpParams {
    const void *hidden, *weight, *bias, *target;
    const float *row_temperature;
    float *partial;
    float *best;
    float *target_logit;
    i64 rows, hidden_stride, weight_stride;
    int vocab, hidden_size;
    int target_bytes;
    float scale;
    float softcap, inverse_softcap;
    Split split;
    int group;
    float *moment;
    float *logit_sums;
    const void *class_weights;
};

struct LinearLogpCombineParams {
    const float *partial, *best, *target_logit;
    const void *target;
    float *logp, *lse;
    int *argmax;
    u64 *target_errors;
    i64 rows, ignore_index;
    int vocab, target_bytes, splits;
    const float *moment;
    float *entropy;
    const float *logit_sums;
    float *logit_sum;
};
static_assert(sizeof(LinearLogpParams) == 160 && sizeof(LinearLogpCombineParams) == 128,
              "runtime/ops/linear_logp_params.h disagrees");

__device__ __forceinline__ i64 load_target(const void *target, int bytes, i64 row) {
    return bytes == 8 ? ((const i64 *)target)[row] : (i64)((const int *)target)[row];
}
