// A row's target apart from its other logits: of all derivatives that by the target's logit is mostly the largest, and were it rounded with the
// others, its error would be that of the gradients. So it stays fp32, is 0 among the others, and its part of each product is added in fp32.
// KEEP IN STEP: row targets (runtime/ops/matrix_product_params.h).
// Config: none
struct RowTarget {
    int target; // -1: no row
    float derivative;
};

// A row by its target: the rows in the order of their targets, those of one target in their own.
struct TargetTerm {
    int target;
    int at;  // among the rows that count
    int row; // in hidden
    int unused;
};

// How many there are, where the device alone knows it.
__device__ __forceinline__ int counted(const int *count, int most) { return count ? min(*count, most) : most; }
