// The softcap of logits, cap tanh(z / cap), and its derivative by z, 1 - tanh^2.
//
// Where |z| < cap, as nearly all logits of a model that was trained with a softcap are, tanh(x) / x is a polynomial in x^2, with neither an exponential nor a
// reciprocal: 1 + x^2 P(x^2), P by weighted least squares for the smallest relative error on |x| < 1, which is 1.6e-7. Beyond, hyperbolic_tangent.
// Config: element
template <class Config> struct Softcap {
    float cap, inverse; // 1 / cap

    // tanh(x) / x for |x| < 1.
    __device__ __forceinline__ static float tangent_ratio(float x) {
        float s = x * x;
        float p = fmaf(fmaf(0.00105825883f, s, -0.00625932186f), s, 0.0203597397f);
        p = fmaf(fmaf(fmaf(p, s, -0.0534986975f), s, 0.133264086f), s, -0.333329868f);
        return fmaf(s, p, 1.0f);
    }

    // Of a lane's logits; of NaN among others, or of NaN alone, whatever it is.
    template <int vectors> __device__ __forceinline__ static float largest_magnitude(const Vector (&data)[vectors]) {
        using Element = typename Config::element;
        u32 of_vector[vectors];
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            const u32(&words)[4] = data[j].words;
            of_vector[j] = larger_magnitudes<Element>(larger_magnitudes<Element>(words[0], words[1]), larger_magnitudes<Element>(words[2], words[3]));
        }
        Vector largest = {};
#pragma unroll
        for (int j = 0; j < vectors; j++) largest.words[0] = larger_magnitudes<Element>(largest.words[0], of_vector[j]);
        float z[vector_elements<Element>], magnitude;
        widen<Element>(largest, z);
        magnitude = fabsf(z[0]);
        return sizeof(Element) == 2 ? fmaxf(magnitude, fabsf(z[1])) : magnitude;
    }

    // NaN is not.
    __device__ __forceinline__ bool is_within(float z) const { return fabsf(z * inverse) < 1; }

    // Of a logit that is. Of -inf, which is not, it is -inf: by that a sum leaves out what it has in a logit's place.
    __device__ __forceinline__ float of_within(float z) const { return rounded_product(z, tangent_ratio(z * inverse)); }
    __device__ __forceinline__ float of_within(float z, float &slope) const {
        float x = z * inverse, ratio = tangent_ratio(x), tangent = x * ratio;
        slope = fmaf(-tangent, tangent, 1.0f);
        return rounded_product(z, ratio);
    }

    // Of any.
    __device__ __forceinline__ float of(float z, float &slope) const {
        float slope_within, within = of_within(z, slope_within);
        float beyond = rounded_product(cap, hyperbolic_tangent(z * inverse, slope));
        slope = is_within(z) ? slope_within : slope;
        return is_within(z) ? within : beyond;
    }
};
