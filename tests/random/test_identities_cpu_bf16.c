/* The bits of fixed problems on the CPU path of a processor that multiplies bf16. */
#include <stdio.h>
#include <string.h>

#include "cpu/microkernel.h"
#include "random/identities.h"

int main(int argc, char **argv)
{
    const char *arithmetic = flp_microkernel_of(FLP_BF16)->arithmetic;

    if (strcmp(arithmetic, "vdpbf16ps") != 0) {
        printf("# the lines are of vdpbf16ps, and this CPU has %s\n", arithmetic);
        return 77;
    }
    flp_random_machine machine = flp_random_cpu_machine();

    machine.name = "cpu_bf16";
    const int code = machine.context ? flp_random_identities_main(&machine, argc, argv) : 1;
    flp_context_destroy(machine.context);
    return code;
}
