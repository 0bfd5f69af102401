// Which rows a tile kernel of linear_logp has: where they lie close together (is_packed), the device alone knows how many there are, and `row` says
// where each stands in what the caller gave.
// Config: is_packed
template <class Config> __device__ __forceinline__ i64 row_count(const LinearLogpParams &params) {
    if constexpr (Config::is_packed) return *params.row_count;
    else return params.rows;
}

template <class Config> __device__ __forceinline__ int source_row(const LinearLogpParams &params, int row) {
    if constexpr (Config::is_packed) return params.row[row];
    else return row;
}
