// linear_logp's forward on Hopper: tile_kernel.cuh's mainloop multiplies hidden (A) by weight (B), the epilogue computes statistics of each row.
// Config: takes_tickets, and those of statistics_kernel and schedule
template <class Config, bool takes_tickets = Config::takes_tickets> struct LinearLogpShared { Stages<Config> stages; };

// The dynamic tile scheduler: tickets.cuh, emitted where Config::takes_tickets.
template <class Config> struct Tickets;
template <class Config> struct TicketedSchedule;
template <class Config> struct alignas(1024) LinearLogpShared<Config, true> {
    Stages<Config> stages;
    Tickets<Config> tickets;
};

template <class Config> struct LinearLogp : StatisticsKernel<Config, LinearLogpShared<Config>, RowStatistics<Config>> {
    using Base = StatisticsKernel<Config, LinearLogpShared<Config>, RowStatistics<Config>>;
    using Base::Base;
    using Base::params, Base::statistics, Base::row;

    __device__ __forceinline__ void init() const {
        if constexpr (Config::takes_tickets) this->shared.tickets.init(params);
    }
    __device__ __forceinline__ void prepare() const {
        Base::prepare();
        allow_next_kernel(); // the combine may be launched now; it waits for this kernel's end itself
    }

    __device__ __forceinline__ auto walk(int turn) const {
        if constexpr (Config::takes_tickets) return TicketedSchedule<Config>(params, this->shared.tickets);
        else return Schedule<Config, Config::turns>(params, turn);
    }

    template <int count> __device__ __forceinline__ void consume(float (&d)[count], bool is_first, int tile, int) {
        if (Config::consumer_groups == 1 && row >= row_count<Config>(params)) return; // a warp past the last row only takes part in the products
        Base::take_up();
        statistics.absorb(params, d, tile * Config::block_columns, is_first);
        Base::lay_down();
    }

    __device__ __forceinline__ void finish(const Unit &unit) {
        Base::take_up();
        statistics.finish();
        statistics.store(params, unit.split);
    }
};

template <class Config> __device__ __forceinline__ void linear_logp(const TensorMap &hidden_map, const TensorMap &weight_map, const LinearLogpParams &params) {
    run_tile_kernel<Config>(LinearLogp<Config>(hidden_map, weight_map, params));
}
