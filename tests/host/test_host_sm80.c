/* The portable kernels, as an Ampere GPU runs them, on the host machine. Behind linear_logp's, most are the same templates as on Hopper: there
 * a third of the cases will do, and all that leave saved exponentials. */
#include "host/host_suite.h"

int main(void)
{
    return flp_host_suite_run("sm_80@host", 80, 3, FLP_HOST_LINEAR | FLP_HOST_OTHERS);
}
