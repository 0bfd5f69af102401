// The forward's epilogue where the terms 2^(z2 - k) are kept for the gradients: row_statistics with one offset k a row for the whole vocabulary.
//
// The offsets come from the vocabulary's first columns, in a launch of their own. A row with terms too large for its offset is noticed as
// in row_statistics, its sums go on with another, and its block is run again from the offset that the combine gives it. So what is kept of a
// row depends on that row alone.
// Config: those of row_statistics

// A thread's, where they lie in shared memory.
template <int threads> struct KeptStatistics {
    float offset[2][threads], sum[2][threads], moment[2][threads];
    int target[2][threads];
};

// What is kept lies in blocks of columns, one below the other: there (row, column) lies at another place. column: a multiple of FLP_SAVED_BLOCK_UNIT.
struct SavedExpPlace {
    const LinearLogpParams &params;

    __device__ __forceinline__ void operator()(int &row, int &column) const {
        u32 at = (u32)column;
        make_opaque(at); // one box after the other: their places all at once want registers
        int block = (int)((u64)(at / FLP_SAVED_BLOCK_UNIT) * params.saved_block_reciprocal >> 32);
        column = (int)at - block * params.saved_block_columns;
        row += block * params.saved_block_rows;
    }
};

template <class Config> struct SavedExpStatistics : RowStatistics<Config> {
    using Base = RowStatistics<Config>;
    using Base::count, Base::offset, Base::sum, Base::moment, Base::row;

    __device__ __forceinline__ static bool is_row(const LinearLogpParams &params, int row) { return row < row_count<Config>(params); }

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int first) {
        Base::begin(params, first);
#pragma unroll
        for (int h = 0; h < 2; h++) // behind the last row all terms become 0
            offset[h] = is_row(params, row(h)) ? params.offset[row(h)] : infinity;
    }

    __device__ __forceinline__ void transform_all(const LinearLogpParams &params, float (&z)[count], float (&scale)[2], int first_column) {
        Base::load_scale(params, scale);
#pragma unroll
        for (int i = 0; i < count; i += Base::unroll_chunk)
            Base::template transform<Base::unroll_chunk>(params, &z[i], scale, column_at(first_column, Base::place(i)));
    }

    // z: hidden . weight^T of the vocabulary's first columns and the rows from `first` on. Leaves the rows' offsets and clears their flags.
    __device__ __forceinline__ void find_offsets(const LinearLogpParams &params, float (&z)[count], int first) {
        float scale[2];
        Base::load_targets(params, first);
        transform_all(params, z, scale, 0);
        Base::template take_target<false>(params, z, scale, 0);
        bool wanted[2] = {true, true};
        offset[0] = offset[1] = -infinity;
        Base::template take_maximum<Base::first_look>(z, scale, wanted);
        constexpr int block_rows = Config::block_rows * Config::cluster;
        if (Base::first_row % block_rows == 0 && lane_index() == 0) {
            int row_block = Base::first_row / block_rows;
            if (row_block == 0) params.block_overflow[0] = 0;
            params.block_overflow[row_block + 1] = 0;
        }
        if (lane_index() % 4 != 0) return;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (!is_row(params, row(h))) continue;
            params.offset[row(h)] = offset[h];
            params.overflow[row(h)] = 0;
        }
    }

    // The terms are kept: store(value) takes value(i) of each accumulator i, once and those of a row in their order; rows behind the last it may leave.
    template <class Store> __device__ __forceinline__ void store_exponentials(const float (&z)[count], const float (&scale)[2], float (&tile_sum)[2],
                                                                              float (&tile_moment)[2], Store store) const {
        float part[4] = {0, 0, 0, 0}, moment_part[4] = {0, 0, 0, 0};
        float k[2] = {offset[0] == -infinity ? 0 : offset[0], offset[1] == -infinity ? 0 : offset[1]};
        store([&](int i) {
            int h = (i >> 1) & 1;
            float x = fmaf(z[i], scale[h], -k[h]), power = exp2_approximate(x);
            part[i & 3] += power;
            if constexpr (Config::wants_entropy) {
                moment_part[i & 3] = fmaf(power, fmaxf(x, -126.0f), moment_part[i & 3]);
                pin_value(moment_part[i & 3]);
            }
            return power;
        });
#pragma unroll
        for (int h = 0; h < 2; h++) {
            tile_sum[h] = part[2 * h] + part[2 * h + 1];
            if constexpr (Config::wants_entropy) tile_moment[h] = moment_part[2 * h] + moment_part[2 * h + 1];
        }
    }

    // z: as for row_statistics.
    template <class Store> __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&z)[count], int first_column, Store store) {
        float scale[2];
        transform_all(params, z, scale, first_column);
        // What is kept needs the z2 of large rows before the sums.
        if (rarely(warp_any(Base::is_near_target(first_column) || is_large(offset[0]) || is_large(offset[1])))) {
            Base::template take_target<true>(params, z, scale, first_column);
            Base::multiply_large(z, scale);
        }

        float tile_sum[2], tile_moment[2];
        bool wanted[2] = {false, false}, refresh = false, keeps = first_column < params.saved_columns;
        if (keeps) store_exponentials(z, scale, tile_sum, tile_moment, store);
        do {
            if (refresh) {
                Base::template take_maximum<count>(z, scale, wanted);
                Base::multiply_large(z, scale);
            }
            if (refresh || !keeps) Base::add_exponentials(z, scale, tile_sum, tile_moment);
            if (refresh) break;
#pragma unroll
            for (int h = 0; h < 2; h++) wanted[h] = quad_any(!(tile_sum[h] < safe_sum)) || offset[h] == -infinity;
            refresh = warp_any(wanted[0] || wanted[1]);
        } while (refresh);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += tile_sum[h];
            if constexpr (Config::wants_entropy) moment[h] += tile_moment[h];
        }
    }

    template <int threads> __device__ __forceinline__ void lay_down(KeptStatistics<threads> &to) const {
        int thread = thread_index_reread();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            to.offset[h][thread] = offset[h];
            to.sum[h][thread] = sum[h];
            if constexpr (Config::wants_entropy) to.moment[h][thread] = moment[h];
            to.target[h][thread] = Base::target[h];
        }
    }

    template <int threads> __device__ __forceinline__ void take_up(const KeptStatistics<threads> &from, int first) {
        int thread = thread_index_reread();
        Base::first_row = first;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            offset[h] = from.offset[h][thread];
            sum[h] = from.sum[h][thread];
            if constexpr (Config::wants_entropy) moment[h] = from.moment[h][thread];
            Base::target[h] = from.target[h][thread];
        }
    }

    __device__ __forceinline__ void store(const LinearLogpParams &params, int split) const {
        Base::store(params, split);
        if (params.phase != FLP_SAVE_EXP_KEEP || lane_index() % 4 != 0) return;
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (is_row(params, row(h)) && offset[h] != params.offset[row(h)]) atomicExch(&params.overflow[row(h)], 1);
    }
};
