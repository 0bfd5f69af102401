/* The host machine: buffers are its memory to the byte while a problem runs, and a rule that a kernel breaks is a failure. */
#include "random/host.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/host_device.h"
#include "host/host_suite.h"
#include "host/host_workspace.h"
#include "host/machine/machine_api.h"

static void begin(const flp_random_machine *machine, uint64_t seed)
{
    (void)machine;
    flp_workspace_watcher = flp_host_workspace_watch;
    flp_host_suite_begin(seed);
}

static int place(const flp_random_machine *machine, flp_random_memory *memory, char *message, size_t bytes)
{
    (void)machine;
    (void)message;
    (void)bytes;
    for (int role = 0; role < FLP_RANDOM_ROLES; role++)
        if (memory->buffer[role].base)
            flp_host_machine_add_memory(memory->buffer[role].base + memory->buffer[role].offset, memory->buffer[role].data_bytes);
    return 1;
}

static int fetch(const flp_random_machine *machine, flp_random_memory *memory, char *message, size_t bytes)
{
    (void)machine;
    (void)memory;
    if (!flp_host_device.failure[0])
        return 1;
    snprintf(message, bytes, "broken rule: %s", flp_host_device.failure);
    return 0;
}

static void release(const flp_random_machine *machine, flp_random_memory *memory)
{
    (void)machine;
    for (int role = 0; role < FLP_RANDOM_ROLES; role++)
        if (memory->buffer[role].base)
            flp_host_machine_remove_memory(memory->buffer[role].base + memory->buffer[role].offset);
}

static void watch_no_lives(const flp_random_machine *machine, const flp_random_memory *memory)
{
    (void)machine;
    flp_workspace_watcher = NULL;
    flp_host_machine_set_parts(flp_random_memory_at(memory, FLP_RANDOM_WORKSPACE), 0, NULL, 0, "");
}

static void *address(const flp_random_buffer *buffer)
{
    return buffer->base;
}

/* NVRTC makes one fused operation of a product and a sum wherever it can, so the kernels whose numbers are looked at here are compiled alike. */
static void compile_with_fused_sums(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma"))
        setenv("FUSEDLOGP_HOST_CXXFLAGS", "-O1 -g1 -fexpensive-optimizations -mfma -ffp-contract=fast", 0);
    else
        printf("# this processor has no fused operations, and kernels are compiled without\n");
#else
    setenv("FUSEDLOGP_HOST_CXXFLAGS", "-O1 -g1 -fexpensive-optimizations -ffp-contract=fast", 0);
#endif
}

flp_random_machine flp_random_host_machine(const char *name, int compute_capability)
{
    compile_with_fused_sums();
    return (flp_random_machine){ .name = name,
                                 .work = 1.2e5,
                                 .context = flp_host_suite_start(compute_capability),
                                 .begin = begin,
                                 .place = place,
                                 .fetch = fetch,
                                 .release = release,
                                 .watch_no_lives = watch_no_lives,
                                 .address = address };
}
