// Vectors of rows that begin at any element: memory is accessed in aligned vectors of 16 bytes, which shuffles between lanes shift into the row's vectors.
// Config: none

// The 32-bit word number `word` from the aligned address `from` on. Only elements `low` .. `high` - 1, counted from `from`, are read; others become 0.
template <class Element> __device__ __forceinline__ u32 load_word_between(const Element *from, int word, int low, int high) {
    if constexpr (sizeof(Element) == 4) return word >= low && word < high ? ((const u32 *)from)[word] : 0;
    u32 first = 2 * word >= low && 2 * word < high ? ((const u16 *)from)[2 * word] : 0;
    u32 second = 2 * word + 1 >= low && 2 * word + 1 < high ? ((const u16 *)from)[2 * word + 1] : 0;
    return first | second << 16;
}

template <class Element> __device__ __forceinline__ Vector load_between(const Element *from, int low, int high) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < 4; i++) vector.words[i] = load_word_between(from, i, low, high);
    return vector;
}

// Calls visit(Words<n>()), where n = 0 .. 3 is the number of whole words in `bytes`, 0 .. 15: it turns a number of words into a constant.
template <int n> struct Words { static constexpr int count = n; };
template <class Visit> __device__ __forceinline__ void visit_words(int bytes, Visit visit) {
    if (bytes < 4) visit(Words<0>());
    else if (bytes < 8) visit(Words<1>());
    else if (bytes < 12) visit(Words<2>());
    else visit(Words<3>());
}

// Of two consecutive vectors, the 16 bytes that begin `first` words and `bits`, 0 .. 31, after their start.
template <int first> __device__ __forceinline__ Vector vector_within(const u32 (&words)[8], int bits) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < 4; i++) vector.words[i] = (u32)(((u64)words[first + i + 1] << 32 | words[first + i]) >> bits);
    return vector;
}

// Replaces each of a lane's vectors by the 16 bytes that begin `word` words and `bits` after its start. What lies past its end comes from the next lane, for
// the last lane from the first lane's next vector.
template <int vectors, int word> __device__ __forceinline__ void shift_words(Vector (&data)[vectors], u32 behind, int bits) {
    int lane = lane_index_reread(), next_lane = (lane + 1) % 32;
    bool is_first = lane == 0, is_last = lane == 31;
#pragma unroll
    for (int j = 0; j < vectors; j++) {
        u32 words[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            words[i] = data[j].words[i];
            if (i > word) continue;
            u32 sent = is_first && j + 1 < vectors ? data[(j + 1) % vectors].words[i] : words[i];
            words[4 + i] = __shfl_sync(0xffffffffu, sent, next_lane);
            if (j + 1 == vectors) {
                u32 last = __shfl_sync(0xffffffffu, behind, i);
                if (is_last) words[4 + i] = last;
            }
        }
        data[j] = vector_within<word>(words, bits);
    }
}

// Lane l holds the aligned vectors l, 32 + l, ..., and lanes 0 .. 3 each hold in `behind` one word of the vector that follows them all. Replaces each vector
// by the 16 bytes that begin `bytes`, 0 .. 15, after its start. bytes: the same in all lanes.
template <int vectors> __device__ __forceinline__ void shift_vectors(Vector (&data)[vectors], u32 behind, int bytes) {
    int bits = bytes % 4 * 8;
    if (bytes != 0) visit_words(bytes, [&](auto words) { shift_words<vectors, decltype(words)::count>(data, behind, bits); });
}

// The opposite of shift_words: replaces each of a lane's vectors by the 16 bytes that begin `word` words and `bits` before its start. What lies before it
// comes from the previous lane, for the first lane from the last lane's previous vector.
template <int vectors, int word> __device__ __forceinline__ void unshift_words(Vector (&data)[vectors], int bits) {
    int lane = lane_index_reread(), previous_lane = (lane + 31) % 32;
    bool is_last = lane == 31;
#pragma unroll
    for (int j = vectors - 1; j >= 0; j--) {
        u32 words[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            words[4 + i] = data[j].words[i];
            if (i < 3 - word) continue;
            u32 sent = is_last && j > 0 ? data[(j + vectors - 1) % vectors].words[i] : words[4 + i];
            words[i] = __shfl_sync(0xffffffffu, sent, previous_lane);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) data[j].words[i] = (u32)(((u64)words[4 + i - word] << 32 | words[3 + i - word]) << bits >> 32);
    }
}

// The opposite of shift_vectors: turns vectors that begin `bytes`, 0 .. 15, after an aligned address into the aligned vectors. Of the last lane's last
// vector, the elements past the last aligned vector are lost; of the first lane's first vector, the elements before the row's data are meaningless.
template <int vectors> __device__ __forceinline__ void unshift_vectors(Vector (&data)[vectors], int bytes) {
    int bits = bytes % 4 * 8;
    if (bytes != 0) visit_words(bytes, [&](auto words) { unshift_words<vectors, decltype(words)::count>(data, bits); });
}
