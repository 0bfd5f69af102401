/* The portable kernels, as an Ampere GPU runs them, on the host machine. Except for linear_logp's forward, most of their templates are Hopper's, too: there a
 * third of the cases suffices, and all with saved exponentials. */
#include "host/host_suite.h"

int main(void)
{
    return flp_host_suite_run("sm_80@host", 80, 3, FLP_HOST_LINEAR | FLP_HOST_OTHERS);
}
