// The targets' contribution to a product's tiles on Hopper (target_contribution.cuh), where there is none, or where each row of out has a target of its own.
// Where out's rows or columns are vocabulary entries, target_lookahead.cuh replaces this.
// Config: targets_of_rows, targets_in_rows, targets_in_columns
template <class Config, bool looks_ahead = Config::targets_in_rows || Config::targets_in_columns> struct ProductTargets {
    using Shared = ProductShared<Config>; // the kernel's shared memory
    const MatrixProductParams &params;
    __device__ __forceinline__ ProductTargets(Shared &, const MatrixProductParams &params) : params(params) {}
    __device__ __forceinline__ static void init(Shared &) {}
    template <class Walk> __device__ __forceinline__ static void look_up(Shared &, const MatrixProductParams &, const Walk &, int, int) {}
    __device__ __forceinline__ void start(int, int) {}
    template <int count> __device__ __forceinline__ void add(float (&d)[count], int rows, int targets, int row, int column, void *) {
        if constexpr (Config::targets_of_rows) TargetContribution<Config>(params, rows, targets, row, column).add(d);
    }
};
