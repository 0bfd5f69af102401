/* The bits of fixed problems on the kernels of sm_90a@host. */
#include "random/host.h"
#include "random/identities.h"

int main(int argc, char **argv)
{
    flp_random_identities_begin();
    const flp_random_machine machine = flp_random_host_machine("sm_90a@host", 90);

    return machine.context ? flp_random_identities_main(&machine, argc, argv) : 1;
}
