/* Problems drawn at random on the GPU, with the generator and the bounds of tests/random. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device_test.h"
#include "random/suite.h"

/* One piece of memory for all buffers of a problem, each of which is aligned to 256 bytes. */
static struct {
    CUdeviceptr memory;
    size_t bytes, used;
} arena;

enum { HOURS = 4 };

static int tell_error(char *message, size_t bytes)
{
    snprintf(message, bytes, "%s", flp_error_message());
    return 0;
}

static int reserve(size_t bytes, char *message, size_t message_bytes)
{
    if (bytes <= arena.bytes)
        return 1;
    flp_gpu_free_all(&flp_device_test.gpu);
    arena.bytes = 0;
    if (flp_gpu_allocate(&flp_device_test.gpu, 2 * bytes, &arena.memory) != FLP_OK)
        return tell_error(message, message_bytes);
    arena.bytes = 2 * bytes;
    return 1;
}

static int place(const flp_random_machine *machine, flp_random_memory *memory, char *message, size_t bytes)
{
    size_t needed = 0;

    (void)machine;
    for (int role = 0; role < FLP_RANDOM_ROLES; role++)
        needed += memory->buffer[role].base ? memory->buffer[role].bytes : 0;
    if (!reserve(needed, message, bytes))
        return 0;
    arena.used = 0;
    for (int role = 0; role < FLP_RANDOM_ROLES; role++) {
        flp_random_buffer *buffer = &memory->buffer[role];
        if (!buffer->base)
            continue;
        buffer->device = (uint64_t)(arena.memory + arena.used);
        arena.used += buffer->bytes;
        if (flp_gpu_upload(&flp_device_test.gpu, (CUdeviceptr)buffer->device, buffer->base, buffer->bytes) != FLP_OK)
            return tell_error(message, bytes);
    }
    return 1;
}

static int fetch(const flp_random_machine *machine, flp_random_memory *memory, char *message, size_t bytes)
{
    (void)machine;
    if (flp_gpu_synchronize(&flp_device_test.gpu) != FLP_OK)
        return tell_error(message, bytes);
    for (int role = 0; role < FLP_RANDOM_ROLES; role++) {
        const flp_random_buffer *buffer = &memory->buffer[role];
        if (buffer->base && flp_gpu_download(&flp_device_test.gpu, buffer->base, (CUdeviceptr)buffer->device, buffer->bytes) != FLP_OK)
            return tell_error(message, bytes);
    }
    return 1;
}

static void release(const flp_random_machine *machine, flp_random_memory *memory)
{
    (void)machine;
    (void)memory;
}

static void *address(const flp_random_buffer *buffer)
{
    return (void *)(uintptr_t)buffer->device;
}

static void begin(const flp_random_machine *machine, uint64_t seed)
{
    (void)machine;
    (void)seed;
}

static int enter(const flp_random_machine *machine)
{
    (void)machine;
    return flp_device_test.gpu.driver->context_set_current(flp_device_test.gpu.context) == CUDA_SUCCESS;
}

/* argv[1]: one problem's text. The options of the other device tests choose among tests, and here there is one. */
int main(int argc, char **argv)
{
    char *no_options[] = { argv[0], NULL };
    int code = flp_device_test_start(1, no_options);

    if (code != 0)
        return code;
    alarm(HOURS * 3600);
    const flp_random_machine machine = { .name = "gpu",
                                         .work = 1e6,
                                         .context = flp_device_test.context,
                                         .enter = enter,
                                         .begin = begin,
                                         .place = place,
                                         .fetch = fetch,
                                         .release = release,
                                         .address = address };
    code = flp_random_suite_main(&machine, argc, argv, 700);
    flp_gpu_free_all(&flp_device_test.gpu);
    flp_device_test_finish();
    return code;
}
