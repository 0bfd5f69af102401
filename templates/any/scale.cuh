// x[row, d] *= factor, in fp32 and rounded once. Where the factor is 1, x is neither read nor written.
//
// Any address of x will do: the elements before a row's first 16-byte boundary and behind its last one are scaled one by one, by the block that has the row's
// first part.
// Config: element, threads, unroll
template <class Element> __device__ __forceinline__ void scale_element(Element *x, float factor) { store_rounded(to_float(*x) * factor, x); }

// Scales the part's vectors of a row: those from `first` on, as many as the block takes at a time.
template <class Config> __device__ __forceinline__ void scale_vectors(Vector *row, i64 first, i64 vectors, float factor) {
    using Element = typename Config::element;
    Vector loaded[Config::unroll];
#pragma unroll
    for (int i = 0; i < Config::unroll; i++) {
        i64 at = first + i * Config::threads + threadIdx.x;
        if (at < vectors) loaded[i] = row[at];
    }
#pragma unroll
    for (int i = 0; i < Config::unroll; i++) {
        i64 at = first + i * Config::threads + threadIdx.x;
        if (at >= vectors) return;
        float values[vector_elements<Element>];
        widen<Element>(loaded[i], values);
#pragma unroll
        for (int j = 0; j < vector_elements<Element>; j++) values[j] *= factor;
        row[at] = narrow<Element>(values);
    }
}

template <class Config> __device__ __forceinline__ void scale(const ScaleParams &params) {
    using Element = typename Config::element;
    constexpr int elements = vector_elements<Element>, part_vectors = Config::threads * Config::unroll;
    static_assert(part_vectors * 16 == FLP_SCALE_PART_BYTES, "params/scale.h and gen/kernels/helpers.lua disagree");
    const float factor = *params.factor;
    if (factor == 1) return;

    const i64 units = params.rows * params.parts;
#pragma unroll 1
    for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const i64 part = unit % params.parts;
        auto row = (Element *)params.x + unit / params.parts * params.x_stride;
        const int before = (int)(-(u64)row % 16 / sizeof(Element)), lead = before < params.columns ? before : (int)params.columns;
        const i64 vectors = (params.columns - lead) / elements;
        scale_vectors<Config>((Vector *)(row + lead), part * part_vectors, vectors, factor);
        if (part != 0) continue;
        const i64 rest = lead + vectors * elements;
        if ((int)threadIdx.x < lead) scale_element(row + threadIdx.x, factor);
        if (rest + threadIdx.x < params.columns) scale_element(row + rest + threadIdx.x, factor);
    }
}
