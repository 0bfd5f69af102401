/* Runs the kernels of one problem on the host machine (the GPU simulator) with random data, and compares with fp64. Meant to be run under a debugger.
 *
 * usage: run_kernel PROBLEM [sm_90a | sm_80] [SEED]     e.g. run_kernel linear_logp:bf16:n33:d72:v300:argmax
 *
 * The templates are those of $FUSEDLOGP_SOURCE_DIR, else of the current folder if that is a source tree, else those embedded in the program. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/host_linear_logp.h"
#include "host/host_suite.h"

/* Uses the templates of the current folder if it is a source tree, so that edits take effect, and prints which are used: else an edit of other ones would seem
 * to have no effect. */
static void choose_templates(void)
{
    char folder[PATH_MAX];
    const char *set;

    if (!getenv("FUSEDLOGP_SOURCE_DIR") && access("gen/fusedlogp.lua", R_OK) == 0 && access("templates/host/cuda.cuh", R_OK) == 0 &&
        getcwd(folder, sizeof(folder)))
        setenv("FUSEDLOGP_SOURCE_DIR", folder, 1);
    set = getenv("FUSEDLOGP_SOURCE_DIR");
    printf("templates: %s%s\n", set ? set : "those embedded in this program", set ? "/templates" : "");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    flp_case c = { .name = "run_kernel" };
    const int capability = argc > 2 && strcmp(argv[2], "sm_80") == 0 ? 80 : 90;
    flp_context *context;
    char message[8192];
    int right;

    if (argc < 2 || argc > 4 || (argc > 2 && capability == 90 && strcmp(argv[2], "sm_90a") != 0)) {
        fprintf(stderr, "usage: %s PROBLEM [sm_90a | sm_80] [SEED]\n", argv[0]);
        return 2;
    }
    choose_templates();
    context = flp_host_suite_start(capability);
    if (!context || flp_linear_logp_problem_parse(argv[1], &c.problem) != FLP_OK) {
        fprintf(stderr, "%s\n", flp_error_message());
        return 2;
    }
    flp_host_linear_logp_complete(&c);
    c.bias = c.problem.bias_dtype == FLP_NONE ? FLP_CASE_NO_BIAS : FLP_CASE_PLAIN_BIAS;
    flp_host_suite_begin(argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
    right = flp_host_linear_logp_run(context, &c, message, sizeof(message));
    printf("%s\n", right ? "right" : message);
    flp_context_destroy(context);
    return !right;
}
