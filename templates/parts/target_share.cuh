// A row's target and the row's other logits, whose terms alone make up the row's sum: their shares of the probability.
//
// With r = (sum of the others' terms) / (the target's term), the target's log-probability is -log1p(r): nothing cancels, however likely the target is. The
// same ratio gives the row's entropy. KEEP IN STEP: target's share (runtime/cpu/target_share.h)
// Config: none
struct TargetShare {
    float ratio; // of the two, the target's term and the others' sum: the smaller divided by the larger
    float log2_r;
    float log_whole; // log of (target's term + others' sum) / the larger of the two
    bool leads;      // the target's term is the larger one

    // sum: that of the others' terms; log2_sum: its log2; 2^d: the target's term.
    __device__ __forceinline__ static TargetShare of(float sum, float log2_sum, float d) {
        float u = log2_sum - d;
        bool leads = u < 0;
        float root = exp2_approximate(leads ? -0.5f * d : -u); // 2^-d itself may be below fp32 where the ratio is not
        float ratio = leads ? sum * root * root : root;
        return {ratio, u, log1pf(ratio), leads};
    }

    // The row's entropy. others: the entropy of the other logits alone. All terms added here are positive.
    __device__ __forceinline__ float entropy(float others) const {
        float larger = 1 / (1 + ratio), smaller = ratio * larger, rest = leads ? smaller : larger;
        float entropy = log_whole;
        if (smaller > 0) entropy = fmaf(smaller, fabsf(log2_r) * ln_2, entropy);
        if (rest > 0) entropy = fmaf(rest, others, entropy);
        return entropy;
    }
};
