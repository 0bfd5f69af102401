// The units of one launch of linear_logp_save_exp: of all row blocks, or of those with a row that overflowed.
// Config: those of schedule
template <class Config> struct SaveExpUnits {
    const LinearLogpParams &params;
    Schedule<Config> schedule;
    bool has_any;
    __device__ __forceinline__ SaveExpUnits(const LinearLogpParams &params)
        : params(params), schedule(params), has_any(params.phase != FLP_SAVE_EXP_AGAIN || (row_count<Config>(params) > 0 && params.block_overflow[0])) {}

    // Where only blocks that overflowed are run again, the others' units are passed over.
    __device__ __forceinline__ bool next(Unit &unit) {
        while (has_any && schedule.next(unit))
            if (params.phase != FLP_SAVE_EXP_AGAIN || params.block_overflow[unit.row_block + 1]) return true;
        return false;
    }
};
