/* The bits of fixed problems, beside the numeric identity that promises them. */
#ifndef FLP_TESTS_RANDOM_IDENTITIES_H
#define FLP_TESTS_RANDOM_IDENTITIES_H
#include "random/machine.h"

/* All of a main. Each problem of the machine's path in tests/random/identities.tsv (a line: path, problem, identity, digest of the outputs, with tabs
 * between) has the line's identity and the line's bits. Bits that changed under an identity that did not are the failure this is for.
 * argv[1] "--lines": prints the path's lines as they are now. */
int flp_random_identities_main(const flp_random_machine *machine, int argc, char **argv);

/* Kernels are compiled without fused sums, where a compiler's choice would decide bits. To be called before the machine is made. */
void flp_random_identities_begin(void);
#endif
