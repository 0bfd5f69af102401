// The weights of the classes (linear_cross_entropy), of a dtype that only the launch knows.
// Config: none

// weights: NULL: all are 1; dtype: flp_dtype; v: the vocabulary entry.
__device__ __forceinline__ float class_weight_at(const void *weights, int dtype, i64 v) {
    if (!weights) return 1;
    if (dtype == 1) return to_float(((const bf16 *)weights)[v]);
    if (dtype == 2) return to_float(((const f16 *)weights)[v]);
    return ((const float *)weights)[v];
}
