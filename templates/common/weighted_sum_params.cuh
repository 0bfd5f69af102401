// What weighted_sum's kernels take. The host half, with every field explained, is runtime/ops/weighted_sum_params.h.
// KEEP IN STEP: weighted_sum parameters.
// Config: none
struct WeightedSumParams {
    const void *x, *w;
    void *y;
    i64 rows, x_stride;
    int columns;
};

struct WeightedSumOuterParams {
    const void *g, *w;
    void *grad_x;
    i64 rows, grad_x_stride;
    int columns, slab, slabs, lanes;
};

struct WeightedSumTileParams {
    const void *x, *g;
    float *partial;
    void *grad_w;
    i64 rows, x_stride, tile_rows;
    int tiles, columns, slab, slabs, lanes, accumulate;
};

struct WeightedSumCombineParams {
    const float *partial;
    void *grad_w;
    int tiles, columns, partial_stride, accumulate;
};
static_assert(sizeof(WeightedSumParams) == 48 && sizeof(WeightedSumOuterParams) == 56 && sizeof(WeightedSumTileParams) == 80 &&
                  sizeof(WeightedSumCombineParams) == 32,
              "runtime/ops/weighted_sum_params.h disagrees");
