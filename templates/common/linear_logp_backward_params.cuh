// What linear_logp's backward kernels take. The host half, with every field explained, is runtime/ops/linear_logp_backward_params.h.
// KEEP IN STEP: linear_logp backward parameters.
// Config: none

struct RowGradient; // row_gradient.cuh

struct BackwardRowsParams {
    const void *target;
    const float *row_temperature, *lse, *entropy, *g_logp, *g_lse, *g_entropy, *g_sum;
    RowGradient *gradient;
    int *row, *place, *count;
    float *factor, *inverse_factor;
    u64 *target_errors;
    i64 ignore_index;
    int rows, vocab, target_bytes;
    float scale, inverse_temperature;
    int scales;
    int places, differentiates, stash_columns;
    int is_handed_over;
    float *row_factor;
    const float *stash_offset, *logp;
    RowTarget *targets;
    int *chunk_counts;
    int chunk_rows, ignores;
    u64 *mark, mark_value;
    int *taken;
    u64 *unmatched;
};

struct BackwardTermsParams {
    const RowTarget *targets;
    const int *row, *row_count;
    TargetTerm *terms;
    int rows, unused;
};

struct BackwardGatherParams {
    const void *hidden;
    void *compact;
    float *sums;
    i64 hidden_stride, compact_stride;
    const int *row, *count;
    int rows, hidden_size;
    const float *row_factor;
    int skips_whole, unused;
    u64 *mark;
};

struct LogitGradientsParams {
    const void *hidden, *weight, *bias;
    void *out;
    i64 hidden_stride, weight_stride, out_stride;
    const RowGradient *gradient;
    const int *row_count;
    int rows, vocab;
    int first_column, columns;
    float softcap, inverse_softcap;
    int group;
    float filter;
    const void *class_weights;
    u32 *kept;
    const float *factor;
    int kept_words, waits_late;
    RowTarget *targets;
};

struct BackwardFilterParams {
    u32 *kept;
    u64 *statistics;
    const int *row_count;
    int words, rows, columns;
    int unused;
};

struct BackwardBiasParams {
    const void *gradients;
    void *out;
    i64 stride;
    const int *row_count;
    const float *factor;
    int rows, columns;
    const float *row_factor;
    const RowTarget *targets;
    int first_column, unused;
};

struct BackwardFinishParams {
    const void *sums;
    void *out;
    i64 sums_stride, out_stride;
    const int *place, *count;
    int rows, hidden_size;
    const RowTarget *targets;
    const void *weight;
    i64 weight_stride;
    const float *factor;
    int first_place, places;
};
static_assert(sizeof(BackwardRowsParams) == 248 && sizeof(BackwardTermsParams) == 40 && sizeof(BackwardGatherParams) == 88 &&
              sizeof(LogitGradientsParams) == 144 && sizeof(BackwardFilterParams) == 40 && sizeof(BackwardBiasParams) == 72 && sizeof(BackwardFinishParams) == 96,
              "runtime/ops/linear_logp_backward_params.h disagrees");
