// linear_logp's forward on any GPU from sm_80 on: the mainloop multiplies hidden (A) by weight (B), the epilogue computes statistics of each row.
// Config: those of tile_kernel, schedule and warp_statistics
template <class Config> struct LinearLogp : TileKernel<Config, StatisticsShared<Config>> {
    const LinearLogpParams &params;
    WarpStatistics<Config, RowStatistics<Config>> warp;

    __device__ __forceinline__ LinearLogp(const LinearLogpParams &params) : params(params) {}

    __device__ __forceinline__ auto operands() const { return forward_operands<Config>(params); }
    __device__ __forceinline__ Schedule<Config> walk() const { return Schedule<Config>(params); }

    __device__ __forceinline__ void begin(int row) { warp.begin(params, row); }

    template <int blocks, int count> __device__ __forceinline__ void consume(float (&d)[blocks][count], int, int column, const Unit &, bool is_first) {
#pragma unroll
        for (int i = 0; i < blocks; i++) warp.statistics[i].absorb(params, d[i], column, is_first);
    }

    __device__ __forceinline__ void finish(int row, const Unit &unit) { warp.finish(this->shared, params, row, unit.split); }
};

template <class Config> __device__ __forceinline__ void linear_logp(const LinearLogpParams &params) { run_tile_kernel<Config>(LinearLogp<Config>(params)); }
