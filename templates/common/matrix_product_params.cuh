// What matrix_product takes. The host half, with every field explained, is runtime/ops/matrix_product_params.h.
// KEEP IN STEP: matrix product parameters.
// Config: none
struct MatrixProductParams {
    const void *left, *right;
    void *out;
    i64 left_stride, right_stride, out_stride;
    const int *row_count, *inner_count;
    const float *factor; // the product is multiplied by it first; NULL: 1
    int rows, columns, inner;
    int group;
    int waits_late, unused;
    const float *row_factor;
    const u32 *kept;
    int kept_words, kept_along;
    const RowTarget *targets;
    const TargetTerm *terms;
    const void *others;
    i64 others_stride;
    int first_target, unused_too;
};
static_assert(sizeof(MatrixProductParams) == 160, "runtime/ops/matrix_product_params.h disagrees");

constexpr int writes_what_was_read = 2; // waits_late
