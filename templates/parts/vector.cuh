// Vectors: 16 bytes of a row, read and written by the widest access that the addresses allow.
// Config: none
struct alignas(8) HalfVector {
    u32 words[2];
};

template <class Element> constexpr int vector_elements = 16 / (int)sizeof(Element);

// Loads a vector that is read once. bytes: the alignment of the address, 16, 8, 4 or 2, which is also the width of the loads.
template <int bytes> __device__ __forceinline__ Vector load_words(const void *from) {
    static_assert(bytes == 16 || bytes == 8 || bytes == 4 || bytes == 2, "an access of the hardware");
    Vector vector;
    if constexpr (bytes == 16) {
        vector = load_once(from);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (bytes == 8) vector.words[i] = ((const HalfVector *)from)[i / 2].words[i % 2];
            else if constexpr (bytes == 4) vector.words[i] = ((const u32 *)from)[i];
            else vector.words[i] = ((const u16 *)from)[2 * i] | (u32)((const u16 *)from)[2 * i + 1] << 16;
        }
    }
    return vector;
}

// Loads the first `valid` elements and nothing else; the others become zeros.
template <class Element> __device__ __forceinline__ Vector load_some(const Element *from, int valid) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(Element) == 4) {
            vector.words[i] = i < valid ? ((const u32 *)from)[i] : 0;
        } else {
            u32 low = 2 * i < valid ? ((const u16 *)from)[2 * i] : 0, high = 2 * i + 1 < valid ? ((const u16 *)from)[2 * i + 1] : 0;
            vector.words[i] = low | high << 16;
        }
    }
    return vector;
}

// Loads a vector from any address, whose alignment is tested here. valid: the number of elements from here to the row's end; past it come zeros.
template <class Element> __device__ __forceinline__ Vector load_anywhere(const Element *from, int valid) {
    if (valid >= vector_elements<Element> && (u64)from % 16 == 0) return *(const Vector *)from;
    if (valid <= 0) return Vector{{0, 0, 0, 0}};
    return load_some(from, valid);
}

template <class Element> __device__ __forceinline__ void widen(const Vector &vector, float (&values)[vector_elements<Element>]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(Element) == 4) {
            values[i] = __uint_as_float(vector.words[i]);
        } else {
            values[2 * i] = to_float(Element{(u16)vector.words[i]});
            values[2 * i + 1] = to_float(Element{(u16)(vector.words[i] >> 16)});
        }
    }
}

// Rounds to nearest even.
template <class Element> __device__ __forceinline__ Vector narrow(const float (&values)[vector_elements<Element>]) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(Element) == 4) vector.words[i] = __float_as_uint(values[i]);
        else vector.words[i] = round_pair<Element>(values[2 * i], values[2 * i + 1]);
    }
    return vector;
}

// Stores the first `valid` elements to any address.
template <class Element> __device__ __forceinline__ void store_anywhere(const Vector &vector, Element *to, int valid) {
    constexpr int elements = vector_elements<Element>;
    if (valid >= elements && (u64)to % 16 == 0) {
        *(Vector *)to = vector;
        return;
    }
    Vector left = vector; // is shifted, in a loop: it compiles in a fraction of the time that an unrolled store of each element takes
#pragma unroll 1
    for (int i = 0; i < min(valid, elements); i++) {
        if constexpr (sizeof(Element) == 4) {
            ((u32 *)to)[i] = left.words[0];
#pragma unroll
            for (int w = 0; w < 3; w++) left.words[w] = left.words[w + 1];
        } else {
            ((u16 *)to)[i] = (u16)left.words[0];
#pragma unroll
            for (int w = 0; w < 4; w++) left.words[w] = left.words[w] >> 16 | (w < 3 ? left.words[w + 1] << 16 : 0);
        }
    }
}

// Loads `count` elements from any address as fp32; those from `valid` on become zeros.
template <class Element, int count> __device__ __forceinline__ void load_floats(const Element *from, int valid, float (&values)[count]) {
    constexpr int elements = vector_elements<Element>;
    if constexpr (count % elements == 0) {
#pragma unroll
        for (int i = 0; i < count; i += elements) {
            float part[elements];
            widen<Element>(load_anywhere(from + i, valid - i), part);
#pragma unroll
            for (int j = 0; j < elements; j++) values[i + j] = part[j];
        }
    } else {
#pragma unroll
        for (int i = 0; i < count; i++) values[i] = i < valid ? to_float(from[i]) : 0;
    }
}
