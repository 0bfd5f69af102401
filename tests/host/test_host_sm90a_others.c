/* The kernels that a Hopper GPU runs, on the host machine: those of the operators other than linear_logp and its backward. */
#include "host/host_suite.h"

int main(void)
{
    return flp_host_suite_run("sm_90a@host, the other operators", 90, 1, FLP_HOST_OTHERS);
}
