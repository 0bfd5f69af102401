// A row's target beside its other entries, whose terms alone are in the row's sum.
//
// With r = (sum of the others) / (the target's term) the target's log-probability is -log1p(r): nothing cancels, however likely the target is. The
// same ratio gives the row's entropy. KEEP IN STEP: target's share (runtime/cpu/target_share.h)
// Config: none
constexpr float log2_e = 1.4426950408889634f;

struct TargetShare {
    float ratio; // of the smaller to the larger, target and others
    float log2_r;
    float log_whole; // log of (target + others) / the larger
    bool leads;      // the target is the larger

    // The others' terms sum to `sum`, the target's is 2^d.
    __device__ __forceinline__ static TargetShare of(float sum, float log2_sum, float d) {
        float u = log2_sum - d;
        bool leads = u < 0;
        float root = exp2_approximate(leads ? -0.5f * d : -u); // 2^-d itself may be below fp32 where the ratio is not
        float ratio = leads ? sum * root * root : root;
        return {ratio, u, log1pf(ratio), leads};
    }

    // others: the entropy of the others among themselves. All terms are positive.
    __device__ __forceinline__ float entropy(float others) const {
        float larger = 1 / (1 + ratio), smaller = ratio * larger, rest = leads ? smaller : larger;
        float entropy = log_whole;
        if (smaller > 0) entropy = fmaf(smaller, fabsf(log2_r) * ln_2, entropy);
        if (rest > 0) entropy = fmaf(rest, others, entropy);
        return entropy;
    }
};
