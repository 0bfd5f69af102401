// Kernels of one stream that overlap: the twin of sm90/dependent_launch.cuh. The machine runs launches one after the other, and knows which of them a GPU
// could run at the same time.
//
// Inlined even without optimisation, because the machine distinguishes the places of these calls.
// Config: none
extern "C" void flp_host_wait_for_previous_kernel();
extern "C" void flp_host_allow_next_kernel();
__attribute__((always_inline)) inline void allow_next_kernel() { flp_host_allow_next_kernel(); }
__attribute__((always_inline)) inline void wait_for_previous_kernel() { flp_host_wait_for_previous_kernel(); }
