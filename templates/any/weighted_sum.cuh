// y[row] = sum_d x[row, d] w[d]: a team of threads for each row.
//
// The order of a row's additions: its 16-byte vectors are dealt round robin to the team's threads. A thread has one accumulator for each position in a
// vector, to which it adds the products of its vectors in order. Then positions, lanes and warps are added pairwise. So the order depends only on the size of
// the team and the dtype of x, not on the alignment or the number of the loads, or on other rows.
//
// x is loaded one step ahead of the products, across the ends of rows, so that loads are always in flight. w is read through the L1 cache, in which the loads
// of x leave no copies. A copy of w in shared memory would have to be waited for at the start, and would take room from the L1 that loads in flight need.
// Config: element, weight_element, output_element, threads, team, unroll, vector_bytes, shared_bytes
template <class Config> struct SharedStorage { float warp_sums[2][Config::threads / 32]; };

// The elements of w that multiply one vector of x.
template <class Config> struct WeightPart {
    using Weight = typename Config::weight_element;
    static constexpr int elements = vector_elements<typename Config::element>;
    static constexpr int bytes = elements * (int)sizeof(Weight), vectors = bytes < 16 ? 1 : bytes / 16;
    static constexpr int alignment = bytes < 16 ? bytes : 16; // of w, for vector loads
    u32 words[4 * vectors];

    __device__ __forceinline__ float value(int i) const {
        if constexpr (sizeof(Weight) == 4) return __uint_as_float(words[i]);
        else return to_float(Weight{(u16)(words[i / 2] >> (i % 2 * 16))});
    }
    __device__ __forceinline__ void set(int i, const Vector &vector) {
#pragma unroll
        for (int j = 0; j < 4; j++) words[4 * i + j] = vector.words[j];
    }

    // Loads the first `valid` elements from any address; the others become zeros.
    __device__ __forceinline__ void load_some(const Weight *from, int valid) {
#pragma unroll
        for (int i = 0; i < vectors; i++) set(i, ::load_some(from + i * vector_elements<Weight>, min(valid, elements) - i * vector_elements<Weight>));
    }
    // Loads all elements.
    template <bool is_aligned> __device__ __forceinline__ void load(const Weight *from) {
        if constexpr (!is_aligned) {
            load_some(from, elements);
        } else if constexpr (bytes == 8) {
            HalfVector half = *(const HalfVector *)from;
            set(0, Vector{{half.words[0], half.words[1], 0, 0}});
        } else {
#pragma unroll
            for (int i = 0; i < vectors; i++) {
                Vector vector = ((const Vector *)from)[i]; // by value: one load
                set(i, vector);
            }
        }
    }
};

// A thread's part of its team's rows. It works in steps of `unroll` loads, and always has the loads of the next step in flight.
template <class Config> struct TeamRows {
    using Element = typename Config::element;
    using Weight = typename Config::weight_element;
    static constexpr int elements = vector_elements<Element>, step = Config::team * Config::unroll;
    static constexpr int teams = Config::threads / Config::team;
    const WeightedSumParams &params;
    const int thread; // in the team
    int row;          // rows stay below 2^29
    int first;        // the row's first vector in the step whose loads are in flight
    Vector loaded[Config::unroll];

    __device__ __forceinline__ TeamRows(const WeightedSumParams &params)
        : params(params), thread(threadIdx.x % Config::team), row(blockIdx.x * teams + threadIdx.x / Config::team), first(0) {
        const Element *from = address(row) + first_element();
#pragma unroll
        for (int i = 0; i < Config::unroll; i++) loaded[i] = load(from, i);
    }

    __device__ __forceinline__ const Element *address(int row) const { return (const Element *)params.x + row * params.x_stride; }
    __device__ __forceinline__ i64 first_element() const { return (i64)(first + thread) * elements; }
    // Load i of the step; zeros past the row's whole vectors.
    __device__ __forceinline__ Vector load(const Element *from, int i) const {
        int end = row < params.rows ? params.columns / elements : 0;
        if (first + thread + i * Config::team >= end) return Vector{{0, 0, 0, 0}};
        return load_words<Config::vector_bytes>(from + i * Config::team * elements);
    }

    // The thread's part of the row's sum. On return the next row's first loads are in flight.
    template <bool is_aligned> __device__ __forceinline__ float take() {
        float sum[elements];
#pragma unroll
        for (int i = 0; i < elements; i++) sum[i] = 0;
        const int vectors = params.columns / elements, rest = params.columns % elements;
        const int taken = row;
        bool is_last;
#pragma unroll 1
        do {
            int place = first + thread;
            auto w = (const Weight *)params.w + first_element();
            first += step;
            is_last = first >= vectors;
            if (is_last) {
                first = 0;
                row += gridDim.x * teams;
            }
            const Element *next = address(row) + first_element();
#pragma unroll
            for (int i = 0; i < Config::unroll; i++) {
                WeightPart<Config> part{};
                if (place + i * Config::team < vectors) part.template load<is_aligned>(w + i * Config::team * elements);
                multiply_add(part, loaded[i], sum);
                loaded[i] = load(next, i);
            }
        } while (!is_last);
        if (rest != 0 && vectors % Config::team == thread && taken < params.rows) {
            const i64 end = (i64)vectors * elements;
            WeightPart<Config> part;
            part.load_some((const Weight *)params.w + end, rest);
            multiply_add(part, load_some(address(taken) + end, rest), sum);
        }
#pragma unroll
        for (int half = elements / 2; half > 0; half /= 2)
#pragma unroll
            for (int i = 0; i < half; i++) sum[i] += sum[i + half];
        return sum[0];
    }

    __device__ __forceinline__ static void multiply_add(const WeightPart<Config> &w, const Vector &vector, float (&sum)[elements]) {
        float x[elements];
        widen<Element>(vector, x);
#pragma unroll
        for (int i = 0; i < elements; i++) sum[i] = fmaf(x[i], w.value(i), sum[i]);
    }
};

// The sum over the team's threads, valid in the team's first thread. All threads of the block must call it; `round` counts the calls.
template <class Config> __device__ __forceinline__ float team_sum(SharedStorage<Config> &shared, float sum, int round) {
    constexpr int lanes = Config::team < 32 ? Config::team : 32, warps = Config::team / lanes;
#pragma unroll
    for (int mask = lanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if constexpr (warps > 1) {
        // Double-buffered: a buffer is written again two rounds later, and the barrier of the round between ensures that it has been read.
        float *sums = shared.warp_sums[round % 2];
        if (lane_index() == 0) sums[threadIdx.x / 32] = sum;
        block_barrier();
        if (threadIdx.x % Config::team < 32) {
            sum = lane_index() < warps ? sums[threadIdx.x / 32 + lane_index()] : 0;
#pragma unroll
            for (int mask = warps / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
        }
    }
    return sum;
}

template <class Config, bool is_aligned> __device__ __forceinline__ void add_rows(const WeightedSumParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/kernels/weighted_sum.lua disagrees");
    constexpr int teams = TeamRows<Config>::teams;
    TeamRows<Config> rows(params);
    int round = 0;
#pragma unroll 1
    for (int base = blockIdx.x * teams; base < params.rows; base += gridDim.x * teams, round++) {
        float sum = team_sum(shared, rows.template take<is_aligned>(), round);
        int row = base + threadIdx.x / Config::team;
        if (threadIdx.x % Config::team == 0 && row < params.rows) store_rounded(sum, (typename Config::output_element *)params.y + row);
    }
}

// A w that is not aligned for vector loads is read element by element.
template <class Config> __device__ __forceinline__ void weighted_sum(const WeightedSumParams &params) {
    if ((u64)params.w % WeightPart<Config>::alignment == 0) add_rows<Config, true>(params);
    else add_rows<Config, false>(params);
}
