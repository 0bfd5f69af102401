// Vectors of a row that begins at any element: loads at multiples of 16 bytes, of which shuffles then make the vectors that lie across two.
// Config: none

// From the aligned word `word` at from: elements `low` .. `high` - 1, counted from `from`; zeros beside them, and nothing else is read.
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

// A lane's words `word` .. of its vector and the next lane's; behind the last lane's lies the first lane's next one.
template <int vectors, int word> __device__ __forceinline__ void shift_words(Vector (&data)[vectors], u32 behind, int bits) {
    bool is_first = lane_index() == 0, is_last = lane_index() == 31;
    int next_lane = (lane_index() + 1) % 32;
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
#pragma unroll
        for (int i = 0; i < 4; i++) data[j].words[i] = (u32)(((u64)words[word + i + 1] << 32 | words[word + i]) >> bits);
    }
}

// Lane l holds the aligned vectors l, 32 + l, ..., and lanes 0 .. 3 in `behind` a word each of the one behind them all. They become what lies
// `bytes`, 0 .. 15, further on. bytes: of all lanes.
template <int vectors> __device__ __forceinline__ void shift_vectors(Vector (&data)[vectors], u32 behind, int bytes) {
    int bits = bytes % 4 * 8;
    if (bytes == 0) return;
    if (bytes < 4) shift_words<vectors, 0>(data, behind, bits);
    else if (bytes < 8) shift_words<vectors, 1>(data, behind, bits);
    else if (bytes < 12) shift_words<vectors, 2>(data, behind, bits);
    else shift_words<vectors, 3>(data, behind, bits);
}
