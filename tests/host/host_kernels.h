/* Kernels for the host machine: emitted for VARIANT@host, compiled by the C++ compiler, and kept as shared objects.
 *
 * Environment: CXX (c++), FUSEDLOGP_HOST_CXXFLAGS (-Og -g1), and FUSEDLOGP_HOST_KERNELS, the directory of the shared objects (fusedlogp-tests/kernels in the
 * user's cache directory). */
#ifndef FLP_TESTS_HOST_KERNELS_H
#define FLP_TESTS_HOST_KERNELS_H
#include "host/machine/machine_api.h"

/* A change of a kernel's source: `from`, which must occur exactly once, is replaced by `to`. */
typedef struct {
    const char *from, *to;
} flp_host_mutation;

/* Changes those kernels that are obtained from now on and contain `from`; NULL: none. */
void flp_host_kernels_mutate(const flp_host_mutation *mutation);
/* How many kernels were changed since then. */
int flp_host_kernels_mutated(void);

/* Makes the kernel of a variant (of a real architecture), which flp_host_kernels_find then finds. Thread-safe. */
void flp_host_kernels_make(const char *variant);
/* Finds a kernel by its name in the real architecture's manifest. NULL, and the reason in *failure, if it was not made or does not compile. */
const flp_host_kernel *flp_host_kernels_find(const char *kernel_name, const char **failure);
/* Forgets all kernels; shared objects stay on the disk. */
void flp_host_kernels_forget(void);
#endif
