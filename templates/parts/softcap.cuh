// The softcap of logits, cap tanh(z / cap), and its derivative by z, 1 - tanh^2.
//
// With x = z / cap: for |x| < 0.6, "within" the softcap, as nearly all logits of a model trained with a softcap are, tanh(x) / x is the polynomial 1 + x^2
// P(x^2), which needs neither an exponential nor a reciprocal. P is a least-squares fit on Chebyshev nodes of that interval; the relative error is below
// 1.6e-7. "Beyond", tanh |x| is (1 - e) / (1 + e) with e = exp(-2 |x|), where 1 - e loses at most one bit; the relative error is below 4e-7. NaN stays NaN.
// Config: has_bias, correction (of linear operators)
template <class Config> struct Softcap {
    float cap, inverse; // 1 / cap
    float factor = 1;   // a compile-time constant by which the arguments z must still be multiplied to be logits

    // The softcap of a kernel's accumulators, to which the correction has not been applied yet (row_statistics.cuh), or, where a bias has been added, of
    // logits.
    template <class Params> __device__ __forceinline__ static Softcap of_products(const Params &params) {
        return {params.softcap, params.inverse_softcap, Config::has_bias ? 1 : Config::correction};
    }

    __device__ __forceinline__ float argument(float z) const { return z * (inverse * factor); }
    // factor tanh(x) / x for |x| < 0.6.
    __device__ __forceinline__ float tangent_ratio(float x) const {
        float s = x * x, p = fmaf(fmaf(fmaf(0.0156079458f * factor, s, -0.0522078414f * factor), s, 0.133130099f * factor), s, -0.333325886f * factor);
        return fmaf(s, p, factor);
    }

    // False for NaN.
    __device__ __forceinline__ bool is_within(float z) const { return fabsf(argument(z)) < 0.6f; }

    // The softcap of a logit within. -inf, which is not within, also gives -inf here: logits that are to be left out of a sum are replaced by -inf.
    __device__ __forceinline__ float of_within(float z) const { return rounded_product(z, tangent_ratio(argument(z))); }
    __device__ __forceinline__ float of_within(float z, float &slope) const {
        float capped = of_within(z), tangent = capped * inverse;
        slope = fmaf(-tangent, tangent, 1.0f);
        return capped;
    }

    // The softcap of a logit beyond. slope: computed from e, as 1 - tanh^2 would have few bits where tanh is near 1.
    __device__ __forceinline__ float of_beyond(float z, float &slope) const {
        float x = argument(z), e = exp2_approximate(-2.8853900817779268f * fabsf(x)), by = reciprocal_approximate(1 + e);
        slope = 4 * e * by * by;
        return rounded_product(cap, copysignf((1 - e) * by, x));
    }

    // The softcap of any logit, without a branch.
    __device__ __forceinline__ float of(float z, float &slope) const {
        float slope_beyond, beyond = of_beyond(z, slope_beyond), within = of_within(z, slope);
        slope = is_within(z) ? slope : slope_beyond;
        return is_within(z) ? within : beyond;
    }
    __device__ __forceinline__ float of(float z) const {
        float slope;
        return of(z, slope);
    }

    __device__ __forceinline__ static float largest_magnitude(const float *z, int count) {
        float largest = 0;
#pragma unroll
        for (int i = 0; i < count; i++) largest = fmaxf(largest, fabsf(z[i]));
        return largest;
    }

    // Replaces `count` logits of each lane by their softcaps. Where none of the warp's is beyond, this takes a third of the instructions, for the same bits.
    template <int count> __device__ __forceinline__ void change(float *z) const {
        if (warp_any(!is_within(largest_magnitude(z, count)))) {
#pragma unroll
            for (int i = 0; i < count; i++) z[i] = of(z[i]);
        } else {
#pragma unroll
            for (int i = 0; i < count; i++) z[i] = of_within(z[i]);
        }
    }
};
