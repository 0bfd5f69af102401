/* The bits of fixed problems on the CPU path where every product is an fp32 multiply-add. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/microkernel.h"
#include "random/identities.h"

/* The lines are those of CPUs with fused sums, which all but very old ones have. */
static int skip_other_arithmetic(void)
{
    const char *arithmetic = flp_microkernel_best()->arithmetic;

    if (strcmp(arithmetic, "fma") == 0)
        return 0;
    printf("# the lines are of fma, and this CPU has %s\n", arithmetic);
    return 1;
}

int main(int argc, char **argv)
{
    setenv("FUSEDLOGP_CPU_BF16", "0", 1);
    if (skip_other_arithmetic())
        return 77;
    const flp_random_machine machine = flp_random_cpu_machine();

    const int code = machine.context ? flp_random_identities_main(&machine, argc, argv) : 1;
    flp_context_destroy(machine.context);
    return code;
}
