// What logits_logp's kernels take. The host half, with every field explained, is runtime/ops/logits_logp_params.h.
// KEEP IN STEP: logits_logp parameters.
// Config: none
struct LogitsLogpParams {
    const void *logits, *target;
    const i64 *row_index;
    const float *row_temperature;
    i64 rows, logits_stride, logits_rows, ignore_index;
    int vocab, target_bytes, scatter, ignores;
    float scale, softcap, inverse_softcap;
    int segments, parts, team_log2;
    float *logp, *lse, *entropy;
    int *argmax;
    u64 *target_errors;
    float *partial, *moment, *best, *normaliser;
    const float *g_logp, *g_lse, *g_entropy, *given_lse, *given_entropy, *given_logp;
    void *grad_logits;
    i64 grad_stride;
};
static_assert(sizeof(LogitsLogpParams) == 240, "runtime/ops/logits_logp_params.h disagrees");
