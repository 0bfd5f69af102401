/* The kernels that a Hopper GPU runs, on the host machine. */
#include "host/host_suite.h"

int main(void)
{
    return flp_host_suite_run("sm_90a@host", 90, 1);
}
