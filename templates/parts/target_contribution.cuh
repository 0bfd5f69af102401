// The targets' contribution to a tile of a product, in fp32. The derivatives by the targets' logits are kept apart and are 0 in dlogit (params/rows.h), so
// out += derivative . (a row of the other operand) is added here for each target.
//
// How out's rows and columns relate to the targets: targets_of_rows, each row of out has one target of its own (grad_hidden); targets_in_rows, out's rows are
// vocabulary entries (grad_weight [V, D]); targets_in_columns, its columns are (grad_weight [D, V]). In the latter two, the targets in a tile are found in
// the list of targets that is sorted by vocabulary entry.
// Config: element, fragment_columns, b_transposed, takes_factors, targets_of_rows, targets_in_rows, targets_in_columns

// The index of the first of the sorted targets that is `target` or more. Called by a warp, which looks at 32 of them in each step of the search.
__device__ __forceinline__ int first_sorted(const SortedTarget *sorted, int count, int target) {
    int low = 0, high = count;
    while (low < high) {
        int step = ceil_div(high - low, 32), probe = low + lane_index() * step;
        int below = __popc(warp_ballot(probe < high && is_before(sorted[probe].target, target)));
        high = min(high, low + below * step);
        low = below > 0 ? low + (below - 1) * step + 1 : high;
    }
    return low;
}

// The targets' contribution to a fragment (row_statistics.cuh) whose first row and column in out are (row, column).
template <class Config> struct TargetContribution {
    static constexpr int count = Config::fragment_columns / 2;
    using element = typename Config::element;
    const MatrixProductParams &params;
    int rows, targets, row, column;
    float factor;

    // targets: the number of all targets.
    __device__ __forceinline__ TargetContribution(const MatrixProductParams &params, int rows, int targets, int row, int column)
        : params(params), rows(rows), targets(targets), row(row), column(column), factor(Config::takes_factors && params.factor ? *params.factor : 1) {}

    // With targets_of_rows the other operand is B. If B is stored [columns, inner], the elements of one of its rows are a stride apart in memory.
    static constexpr bool strides_within = Config::targets_of_rows && !Config::b_transposed;

    // The address of element (i, k) of the other operand.
    __device__ __forceinline__ const element *other(i64 i, i64 k) const {
        return (const element *)params.others + (strides_within ? i + k * params.others_stride : i * params.others_stride + k);
    }

    // Whether two neighbouring elements can be loaded at once. (A thread's first column is even.)
    __device__ __forceinline__ bool has_pairs() const {
        return !strides_within && sizeof(element) == 2 && ((u64)params.others | (u64)params.others_stride * sizeof(element)) % 4 == 0;
    }

    // Adds `by` times row i of the other operand to row h of the thread's two.
    template <int h> __device__ __forceinline__ void add_row(float (&d)[count], float by, int i) const {
        int c = column_at(column, 2 * (lane_index_reread() % 4)), left = columns_left(c, params.columns);
        const element *from = other(i, c);
        if constexpr (sizeof(element) == 2) {
            if (has_pairs() && left >= 2 * count - 6) return add_pairs<h>(d, by, (const u32 *)from);
        }
        i64 step = strides_within ? params.others_stride : 1;
#pragma unroll
        for (int j = h * 2; j < count; j += 4) {
#pragma unroll
            for (int k = 0; k < 2; k++)
                if ((j / 4) * 8 + k < left) d[j + k] = fmaf(by, to_float(from[((j / 4) * 8 + k) * step]), d[j + k]);
            if (j / 4 % 8 == 7) keep_order(); // few loads in flight need few registers
        }
    }

    // The same where all of the thread's columns lie within the matrix and pairs can be loaded.
    template <int h> __device__ __forceinline__ static void add_pairs(float (&d)[count], float by, const u32 *from) {
#pragma unroll
        for (int j = h * 2; j < count; j += 4) {
            u32 pair = from[j / 4 * 4];
            d[j] = fmaf(by, to_float(element{(u16)pair}), d[j]);
            d[j + 1] = fmaf(by, to_float(element{(u16)(pair >> 16)}), d[j + 1]);
            if (j / 4 % 16 == 15) keep_order();
        }
    }

    // targets_of_rows.
    __device__ __forceinline__ void add_of_rows(float (&d)[count]) const {
        int r = row + lane_index_reread() / 4;
        if (r < rows) add_row<0>(d, params.targets[r].derivative * factor, params.targets[r].target);
        if (r + 8 < rows) add_row<1>(d, params.targets[r + 8].derivative * factor, params.targets[r + 8].target);
    }

    // For targets_in_columns: the elements of row i of the other operand that belong to the thread's two rows of out; zeros for i < 0.
    __device__ __forceinline__ void pick(int i, float (&x)[2]) const {
        int r = row + lane_index_reread() / 4;
        x[0] = i >= 0 && r < rows ? to_float(*other(i, r)) : 0;
        x[1] = i >= 0 && r + 8 < rows ? to_float(*other(i, r + 8)) : 0;
    }

    // Adds `by` times x to the fragment's column `to`, which one of the four lanes of a row has. A binary search with uniform branches (`to` is the same in
    // all lanes and in [8 low, 8 high)) finds the accumulator, as registers cannot be indexed.
    template <int low = 0, int high = count / 4> __device__ __forceinline__ static void put(float (&d)[count], int to, float by, const float (&x)[2]) {
        if constexpr (high - low > 1) {
            constexpr int middle = (low + high) / 2;
            if (to < 8 * middle) put<low, middle>(d, to, by, x);
            else put<middle, high>(d, to, by, x);
        } else {
            bool is_mine = lane_index_reread() % 4 == to % 8 / 2;
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (is_mine && to % 2 == k % 2) d[4 * low + k] = fmaf(by, x[k / 2], d[4 * low + k]);
        }
    }

    // Calls each(target - first, its derivative, its row) for the targets among the `size` vocabulary entries from `first` on, one after the other.
    template <class Each> __device__ __forceinline__ void visit(int first, int size, Each each) const {
        for (int at = first_sorted(params.sorted_targets, targets, first); at < targets; at += 32) {
            int mine = at + lane_index();
            SortedTarget own = mine < targets ? params.sorted_targets[mine] : SortedTarget{column_at(first, size), 0, 0, 0};
            bool is_here = is_before(own.target, column_at(first, size));
            float by = is_here ? params.targets[own.at].derivative * factor : 0;
            int here = __popc(warp_ballot(is_here));
#pragma unroll 1
            for (int i = 0; i < here; i++) each(shuffle(own.target, i) - first, shuffle(by, i), shuffle(own.row, i));
            if (here < 32) break;
        }
    }

    // targets_in_rows.
    __device__ __forceinline__ void add_in_rows(float (&d)[count]) const {
        int line = lane_index_reread() / 4;
        visit(column_at(params.first_target, row), 16, [&](int distance, float by, int i) {
            if (distance == line) add_row<0>(d, by, i);
            if (distance == line + 8) add_row<1>(d, by, i);
        });
    }

    // targets_in_columns.
    __device__ __forceinline__ void add_in_columns(float (&d)[count]) const {
        visit(column_at(params.first_target, column), Config::fragment_columns, [&](int distance, float by, int i) {
            float x[2];
            pick(i, x);
            put(d, distance, by, x);
        });
    }

    __device__ __forceinline__ void add(float (&d)[count]) const {
        if constexpr (Config::targets_of_rows) add_of_rows(d);
        if constexpr (Config::targets_in_rows) add_in_rows(d);
        if constexpr (Config::targets_in_columns) add_in_columns(d);
    }
};
