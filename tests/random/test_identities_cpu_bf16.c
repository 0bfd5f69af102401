/* The bits of fixed problems on the CPU path of a processor that multiplies bf16: by tiles or by vectors, as FUSEDLOGP_CPU_BF16 allows. */
#include <stdio.h>
#include <string.h>

#include "cpu/microkernel.h"
#include "random/identities.h"

static const char *lines_of(const char *arithmetic)
{
    if (strcmp(arithmetic, "tdpbf16ps") == 0)
        return "cpu_tiles";
    return strcmp(arithmetic, "vdpbf16ps") == 0 ? "cpu_bf16" : NULL;
}

int main(int argc, char **argv)
{
    const char *arithmetic = flp_microkernel_of(FLP_BF16)->arithmetic;
    flp_random_machine machine;

    if (!lines_of(arithmetic)) {
        printf("# the lines are of tdpbf16ps and vdpbf16ps, and this CPU has %s\n", arithmetic);
        return 77;
    }
    machine = flp_random_cpu_machine();
    machine.name = lines_of(arithmetic);
    const int code = machine.context ? flp_random_identities_main(&machine, argc, argv) : 1;
    flp_context_destroy(machine.context);
    return code;
}
