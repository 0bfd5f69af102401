// The forward's epilogue where the exponentials 2^(z2 - k) are saved for the gradients: row_statistics with one offset k for each row's whole vocabulary.
//
// A launch of its own computes the offsets, from the vocabulary's first columns. A row with terms too large for its offset is noticed as in row_statistics:
// its sums continue with a larger offset, the row is marked, and its row block is computed once more with the offset that the combine chooses. So a row's
// saved exponentials depend on that row alone.
// Config: block_rows, cluster, and those of row_statistics

// Saved exponentials are stored as blocks of columns, one block below the other. Maps (row, column) of the logits to that matrix. column: a multiple of
// FLP_SAVED_BLOCK_UNIT.
struct SavedExpPlace {
    const LinearLogpParams &params;

    __device__ __forceinline__ void operator()(int &row, int &column) const {
        u32 at = (u32)column;
        make_opaque(at); // one TMA box after the other: all their places at once would take registers
        int block = (int)((u64)(at / FLP_SAVED_BLOCK_UNIT) * params.saved_block_reciprocal >> 32);
        column = (int)at - block * params.saved_block_columns;
        row += block * params.saved_block_rows;
    }
};

// only_offsets: all launches of the kernel are of the phase FLP_SAVE_EXP_OFFSETS.
template <class Config, bool only_offsets = false> struct SavedExpStatistics : RowStatistics<Config> {
    using Base = RowStatistics<Config>;
    using Base::count, Base::offset, Base::sum, Base::moment, Base::row;

    __device__ __forceinline__ static bool is_row(const LinearLogpParams &params, int row) { return row < row_count<Config>(params); }

    // Whether this launch is the first one, which computes the offsets from the vocabulary's first columns.
    __device__ __forceinline__ static bool finds_offsets(const LinearLogpParams &params) { return only_offsets || params.phase == FLP_SAVE_EXP_OFFSETS; }

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int first) {
        Base::begin(params, first);
        if (finds_offsets(params)) return;
        int r = row(Base::own_of_two());
        Base::for_both(is_row(params, r) ? params.offset[r] : infinity, offset); // past the last row: all terms become 0
    }

    // Stores the rows' offsets, and clears the overflow flags of the rows and of their row block.
    __device__ __forceinline__ void leave_offsets(const LinearLogpParams &params) const {
        constexpr int block_rows = Config::block_rows * Config::cluster;
        if (Base::first_row % block_rows == 0 && lane_index() == 0) {
            int row_block = Base::first_row / block_rows;
            if (row_block == 0) params.block_overflow[0] = 0;
            params.block_overflow[row_block + 1] = 0;
        }
        int r = row(Base::own_of_two());
        if (!Base::is_writer() || !is_row(params, r)) return;
        params.offset[r] = Base::own_of(offset);
        params.overflow[r] = 0;
    }

    // Computes the terms, adds them up and saves them. store(value) must call value(i) once for each accumulator i, for those of a row in their order; it may
    // skip rows past the last.
    template <class Store>
    __device__ __forceinline__ void store_exponentials(const float (&z)[count], const float (&scale)[2], typename Base::TileSums &sums, Store store) const {
        float k[2] = {Base::offset_of_terms(0), Base::offset_of_terms(1)};
        store([&](int i) { return sums.add(i & 3, fmaf(z[i], scale[(i >> 1) & 1], -k[(i >> 1) & 1])); });
    }

    // z: as in RowStatistics::absorb. store: as in store_exponentials.
    template <class Store> __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&z)[count], int first_column, Store store) {
        float scale[2];
        Base::load_scale(params, scale);
#pragma unroll
        for (int i = 0; i < count; i += Base::unroll_chunk)
            Base::template transform<Base::unroll_chunk>(params, &z[i], scale, column_at(first_column, Base::place(i)));
        // In rows with a large offset, z2 is needed before the exponentials are saved.
        ValuesInMemory<count> in_memory;
        Base::template amend<true>(params, z, in_memory, scale, first_column, !finds_offsets(params));
        if (finds_offsets(params)) {
            Base::find_offset(z, scale);
            leave_offsets(params);
            return;
        }
        typename Base::TileSums sums;
        store_exponentials(z, scale, sums, store);
        bool wanted[2];
#pragma unroll
        for (int h = 0; h < 2; h++) wanted[h] = quad_any(!(sums.sum(h) < safe_sum)) || offset[h] == -infinity;
        if (rarely(warp_any(wanted[0] || wanted[1]))) Base::add_anew(z, in_memory, scale, wanted, sums);
        Base::add_tile(sums);
    }

    __device__ __forceinline__ void store(const LinearLogpParams &params, int split) const {
        Base::store(params, split);
        int r = row(Base::own_of_two());
        if (params.phase != FLP_SAVE_EXP_KEEP || !Base::is_writer() || !is_row(params, r)) return;
        if (Base::own_of(offset) != params.offset[r]) atomicExch(&params.overflow[r], 1);
    }
};
