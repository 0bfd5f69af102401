// Merges the segments' sums of rows that several blocks have read: one warp a row.
// Config: threads, and those of logits_merge
template <class Config> __device__ __forceinline__ void logits_logp_combine(const LogitsLogpParams &params) {
    int number = blockIdx.x * (Config::threads / 32) + warp_index();
    if (number >= params.rows) return;
    LogitsRow<Config> row(params, number); // inputs of the call: no need to wait for the previous kernel
    auto target_logit = load_target_logit(params, row);
    wait_for_previous_kernel();
    finish_row<4>(params, row, number, scratch_slots<Config>(params, number), to_float(target_logit), true);
}
