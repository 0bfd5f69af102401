/* Problems drawn at random on the kernels of sm_90a@host, which the host machine runs. */
#include "random/host.h"
#include "random/suite.h"

int main(int argc, char **argv)
{
    const flp_random_machine machine = flp_random_host_machine("sm_90a@host", 90);

    return machine.context ? flp_random_suite_main(&machine, argc, argv, 140) : 1;
}
