// What the Hopper forward kernels have in common: tile_kernel.cuh's frame with the rows' statistics (row_statistics.cuh) as its epilogue.
//
// The warp roles, the pipeline of stages and the schedules are those of tile_kernel.cuh. A unit is a row block's tiles of one split of the vocabulary
// (schedule.cuh). begin() resets the statistics of the warp's rows, the derived kernel's consume() adds a tile to them, and its finish() stores them for the
// combine.
//
// In the cooperative schedule, the statistics stay in registers from tile to tile. In the ping-pong schedule, a thread's accumulators leave no registers for
// them: during the products they are kept in shared memory, from which take_up() loads them for an epilogue, and to which lay_down() stores them again.
// Config: those of tile_kernel and row_statistics

// The statistics of the consumer threads in shared memory, for the ping-pong schedule.
template <class Config> struct KeptStatistics {
    static constexpr int words = 3 + Config::wants_entropy + Config::wants_logit_sum + 2 * Config::wants_argmax;
    float word[words][2][Config::consumer_groups * 128];

    // Calls visit(word, value) for each of the thread's statistics and the word in which it is kept.
    template <class Statistics, class Visit> __device__ __forceinline__ void visit(Statistics &statistics, Visit visit) {
        int thread = thread_index_reread();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int i = 0;
            visit(word[i++][h][thread], statistics.offset[h]);
            visit(word[i++][h][thread], statistics.sum[h]);
            visit(word[i++][h][thread], statistics.target[h]);
            if constexpr (Config::wants_entropy) visit(word[i++][h][thread], statistics.moment[h]);
            if constexpr (Config::wants_logit_sum) visit(word[i++][h][thread], statistics.logit_sum[h]);
            if constexpr (Config::wants_argmax) {
                visit(word[i++][h][thread], statistics.best[h]);
                visit(word[i++][h][thread], statistics.best_index[h]);
            }
        }
    }
};

__device__ __forceinline__ void copy_word(float &to, float from) { to = from; }
__device__ __forceinline__ void copy_word(float &to, int from) { to = __int_as_float(from); }
__device__ __forceinline__ void copy_word(int &to, float from) { to = __float_as_int(from); }

template <class Config, class KernelShared, bool takes_turns = (Config::turns > 1)> struct StatisticsShared : KernelShared {};
template <class Config, class KernelShared> struct StatisticsShared<Config, KernelShared, true> : KernelShared {
    KeptStatistics<Config> kept[Config::group_rows / 64];
};

// Statistics: RowStatistics or a struct that extends it.
template <class Config, class KernelShared, class Statistics> struct StatisticsKernel : TileKernel<Config, StatisticsShared<Config, KernelShared>> {
    using Base = TileKernel<Config, StatisticsShared<Config, KernelShared>>;
    static constexpr bool takes_turns = Config::turns > 1;
    const LinearLogpParams &params;
    Statistics statistics;
    int row; // the first of the warp's rows

    __device__ __forceinline__ StatisticsKernel(const TensorMap &hidden_map, const TensorMap &weight_map, const LinearLogpParams &params)
        : Base(hidden_map, weight_map), params(params) {}

    __device__ __forceinline__ void prepare() const { TileProduct<Config>::clear_a(this->shared.stages, params.rows); }
    __device__ __forceinline__ int a_rows() const { return TileProduct<Config>::box_rows(params.rows); }

    __device__ __forceinline__ auto &kept() const { return this->shared.kept[row / 64 % (Config::group_rows / 64)]; }
    __device__ __forceinline__ void lay_down() {
        if constexpr (takes_turns) kept().visit(statistics, [](float &word, auto value) { copy_word(word, value); });
    }
    __device__ __forceinline__ void take_up() {
        if constexpr (takes_turns) {
            statistics.first_row = row;
            kept().visit(statistics, [](float word, auto &value) { copy_word(value, word); });
        }
    }

    __device__ __forceinline__ void begin(const Unit &, int first) {
        row = first;
        statistics.begin(params, row);
        lay_down();
    }

    // With a bias there are no registers for it. In the ping-pong schedule only `row` must be exchanged, since take_up() finds the statistics by it.
    static constexpr bool emits_parts_once = !Config::has_bias;
    __device__ __forceinline__ bool exchange(StatisticsKernel &other) {
        if constexpr (!takes_turns) exchange_values(statistics, other.statistics);
        return (row ^= 64) & 64;
    }
};
