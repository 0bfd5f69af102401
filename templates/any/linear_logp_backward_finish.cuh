// grad_hidden from the sums of the rows that count, each rounded once and put back where it belongs; zero for the other rows.
// Config: sum_element, out_element, adds, threads
template <class Config> __device__ __forceinline__ void linear_logp_backward_finish(const BackwardFinishParams &params) {
    using Sum = typename Config::sum_element;
    using Out = typename Config::out_element;
    constexpr int elements = vector_elements<Out>;
    wait_for_previous_kernel();
    if (params.count && *params.count == params.rows) return;
    for (int i = blockIdx.x; i < params.rows; i += gridDim.x) {
        int place = params.place[i];
        if (Config::adds && place < 0) continue;
        const Sum *sums = (const Sum *)params.sums + (place < 0 ? 0 : place) * params.sums_stride;
        Out *out = (Out *)params.out + i * params.out_stride;
        for (int d = elements * threadIdx.x; d < params.hidden_size; d += elements * Config::threads) {
            int valid = params.hidden_size - d;
            float values[elements], old[elements];
            load_floats(sums + d, place < 0 ? 0 : valid, values);
            if constexpr (Config::adds) {
                load_floats(out + d, valid, old);
#pragma unroll
                for (int e = 0; e < elements; e++) values[e] += old[e];
            }
            store_anywhere(narrow<Out>(values), out + d, valid);
        }
    }
}
