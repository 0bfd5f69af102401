// The softcap of logits, cap tanh(z / cap), and its derivative by z, 1 - tanh^2.
//
// Where |z| < 0.6 cap, as nearly all logits of a model that was trained with a softcap are, tanh(x) / x is a polynomial in x^2, with neither an exponential
// nor a reciprocal: 1 + x^2 P(x^2), P by least squares on Chebyshev nodes of that interval; relative error below 1.6e-7. Beyond it is (1 - e) / (1 + e) with
// e = exp(-2 |x|), where 1 - e loses at most one bit; below 4e-7. NaN stays NaN.
// Config: of linear operators has_bias, correction
template <class Config> struct Softcap {
    float cap, inverse; // 1 / cap
    float factor = 1;   // a constant, by which the numbers that are given still have to be multiplied to be logits

    // Of what the tensor cores leave, or, where a bias has been added, of logits.
    template <class Params> __device__ __forceinline__ static Softcap of_products(const Params &params) {
        return {params.softcap, params.inverse_softcap, Config::has_bias ? 1 : Config::correction};
    }

    __device__ __forceinline__ float argument(float z) const { return z * (inverse * factor); }
    // factor tanh(x) / x for |x| < 0.6.
    __device__ __forceinline__ float tangent_ratio(float x) const {
        float s = x * x, p = fmaf(fmaf(fmaf(0.0156079458f * factor, s, -0.0522078414f * factor), s, 0.133130099f * factor), s, -0.333325886f * factor);
        return fmaf(s, p, factor);
    }

    // NaN is not.
    __device__ __forceinline__ bool is_within(float z) const { return fabsf(argument(z)) < 0.6f; }

    // Of one that is. Of -inf, which is not, it is -inf: by that a sum leaves out what it has in a logit's place.
    __device__ __forceinline__ float of_within(float z) const { return rounded_product(z, tangent_ratio(argument(z))); }
    __device__ __forceinline__ float of_within(float z, float &slope) const {
        float capped = of_within(z), tangent = capped * inverse;
        slope = fmaf(-tangent, tangent, 1.0f);
        return capped;
    }

    // Of one that is not; slope: from e, since the difference has few bits where the tangent is near 1.
    __device__ __forceinline__ float of_beyond(float z, float &slope) const {
        float x = argument(z), e = exp2_approximate(-2.8853900817779268f * fabsf(x)), by = reciprocal_approximate(1 + e);
        slope = 4 * e * by * by;
        return rounded_product(cap, copysignf((1 - e) * by, x));
    }

    // Of any, without a branch.
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

    // Of a warp's. Where none is beyond, they take a third of the instructions; their bits are the same.
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
