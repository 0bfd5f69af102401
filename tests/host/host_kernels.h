/* Kernels for the host machine: emitted for VARIANT@host, compiled by the C++ compiler, kept as shared objects in the build directory.
 *
 * Environment: CXX (c++), FUSEDLOGP_HOST_CXXFLAGS (-Og -g1), FUSEDLOGP_HOST_KERNELS, the directory (tests/host/kernels of the build). */
#ifndef FLP_TESTS_HOST_KERNELS_H
#define FLP_TESTS_HOST_KERNELS_H
#include "host/machine/machine_api.h"

/* A change of a kernel's source: `from` stands there exactly once. */
typedef struct {
    const char *from, *to;
} flp_host_mutation;

/* Applies to kernels that are obtained from here on and hold `from`; NULL: none. */
void flp_host_kernels_mutate(const flp_host_mutation *mutation);
/* How many kernels were changed since. */
int flp_host_kernels_mutated(void);

/* Makes the kernel of the variant (of a real architecture), which flp_host_kernels_find then has. Thread-safe. */
void flp_host_kernels_make(const char *variant);
/* By the name that the real architecture's manifest gives it. NULL, and why in *failure, where it was not made or does not compile. */
const flp_host_kernel *flp_host_kernels_find(const char *kernel_name, const char **failure);
/* Forgets all; what was compiled stays on the disk. */
void flp_host_kernels_forget(void);
#endif
