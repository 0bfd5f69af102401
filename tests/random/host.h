/* The host machine as a machine of the random tester. */
#ifndef FLP_TESTS_RANDOM_HOST_H
#define FLP_TESTS_RANDOM_HOST_H
#include "random/machine.h"

/* name: of the path. NULL context: the library refuses. */
flp_random_machine flp_random_host_machine(const char *name, int compute_capability);
#endif
