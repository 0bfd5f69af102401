// The twin of sm90/dependent_launch.cuh: launches run one behind another here, and the machine knows which a GPU may run side by side.
// Inlined without optimisation too: the machine tells the places of these calls apart.
// Config: none
extern "C" void flp_host_wait_for_previous_kernel();
extern "C" void flp_host_allow_next_kernel();
__attribute__((always_inline)) inline void allow_next_kernel() { flp_host_allow_next_kernel(); }
__attribute__((always_inline)) inline void wait_for_previous_kernel() { flp_host_wait_for_previous_kernel(); }
