// What the twins in templates/host/ call. KEEP IN STEP: the host machine's functions (templates/host/cuda.cuh).
#ifndef FLP_TESTS_HOST_MACHINE_KERNEL_API_HPP
#define FLP_TESTS_HOST_MACHINE_KERNEL_API_HPP
#include <cstdint>

// The kernel's place of call, for reports.
#define FLP_HOST_ENTER() (host::machine.current->pc = __builtin_return_address(0))
#define FLP_HOST_API extern "C" __attribute__((visibility("default"), used))

#endif
