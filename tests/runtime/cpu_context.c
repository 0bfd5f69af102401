/* The context of the tests that run on the host alone. */
#include "cpu_context.h"

#include <stddef.h>

flp_context *cpu_context;

int cpu_context_start(void **state)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 2, .flags = FLP_CONTEXT_NO_GPU };

    (void)state;
    return flp_context_create(&options, &cpu_context) != FLP_OK;
}

int cpu_context_stop(void **state)
{
    (void)state;
    flp_context_destroy(cpu_context);
    cpu_context = NULL;
    return 0;
}
