/* The CPU path as a machine of the random tester. */
#include "random/machine.h"

static void begin(const flp_random_machine *machine, uint64_t seed)
{
    (void)machine;
    (void)seed;
}

static int pass(const flp_random_machine *machine, flp_random_memory *memory, char *message, size_t bytes)
{
    (void)machine;
    (void)memory;
    (void)message;
    (void)bytes;
    return 1;
}

static void release(const flp_random_machine *machine, flp_random_memory *memory)
{
    (void)machine;
    (void)memory;
}

static void *address(const flp_random_buffer *buffer)
{
    return buffer->base;
}

flp_random_machine flp_random_cpu_machine(void)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 2, .flags = FLP_CONTEXT_NO_GPU };
    flp_random_machine machine = {
        .name = "cpu", .is_cpu = 1, .work = 5e5, .begin = begin, .place = pass, .fetch = pass, .release = release, .address = address
    };

    if (flp_context_create(&options, &machine.context) != FLP_OK)
        machine.context = NULL;
    return machine;
}

void *flp_random_machine_at(const flp_random_machine *machine, const flp_random_memory *memory, flp_random_role role)
{
    const flp_random_buffer *buffer = &memory->buffer[role];

    return buffer->base ? (unsigned char *)machine->address(buffer) + buffer->offset : NULL;
}
