/* Problems drawn at random on the CPU path. */
#include "random/suite.h"

int main(int argc, char **argv)
{
    const flp_random_machine machine = flp_random_cpu_machine();

    return machine.context ? flp_random_suite_main(&machine, argc, argv, 2000) : 1;
}
