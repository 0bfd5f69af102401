/* Guarded buffers and the comparison with what they held. */
#include "random/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256 };

#define ROLE_NAME(role, name) name,
const char *const flp_random_role_names[FLP_RANDOM_ROLES] = { FLP_RANDOM_ROLE_LIST(ROLE_NAME) };

void flp_random_memory_add(flp_random_memory *memory, flp_random_role role, int64_t data_bytes, int misalignment, int fill)
{
    flp_random_buffer *buffer = &memory->buffer[role];

    *buffer = (flp_random_buffer){ .offset = GUARD_BYTES + (size_t)misalignment, .data_bytes = (size_t)data_bytes };
    buffer->bytes = (buffer->offset + buffer->data_bytes + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    buffer->base = aligned_alloc(GUARD_BYTES, buffer->bytes);
    if (!buffer->base)
        abort();
    memset(buffer->base, fill, buffer->bytes);
}

void flp_random_memory_add_output(flp_random_memory *memory, flp_random_role role, int64_t rows, int64_t columns, int64_t stride, int element, int misalignment,
                                  int fill)
{
    flp_random_buffer *buffer = &memory->buffer[role];

    flp_random_memory_add(memory, role, rows > 0 ? ((rows - 1) * stride + columns) * element : 0, misalignment, fill);
    buffer->rows = rows;
    buffer->columns = columns;
    buffer->stride = stride;
    buffer->element = element;
}

static void seal(flp_random_buffer *buffer)
{
    if (!buffer->before)
        buffer->before = malloc(buffer->bytes);
    if (!buffer->before)
        abort();
    memcpy(buffer->before, buffer->base, buffer->bytes);
}

void flp_random_memory_add_workspace(flp_random_memory *memory, int64_t bytes, int fill)
{
    flp_random_memory_add_output(memory, FLP_RANDOM_WORKSPACE, 1, bytes, bytes, 1, 0, fill);
    seal(&memory->buffer[FLP_RANDOM_WORKSPACE]);
}

void flp_random_memory_remove(flp_random_memory *memory, flp_random_role role)
{
    free(memory->buffer[role].base);
    free(memory->buffer[role].before);
    memory->buffer[role] = (flp_random_buffer){ 0 };
}

void flp_random_memory_free(flp_random_memory *memory)
{
    for (int role = 0; role < FLP_RANDOM_ROLES; role++)
        flp_random_memory_remove(memory, (flp_random_role)role);
}

void flp_random_memory_seal(flp_random_memory *memory)
{
    for (int role = 0; role < FLP_RANDOM_ROLES; role++)
        if (memory->buffer[role].base)
            seal(&memory->buffer[role]);
}

void flp_random_memory_restore(flp_random_memory *memory)
{
    for (int role = 0; role < FLP_RANDOM_ROLES; role++)
        if (memory->buffer[role].before)
            memcpy(memory->buffer[role].base, memory->buffer[role].before, memory->buffer[role].bytes);
}

void *flp_random_memory_at(const flp_random_memory *memory, flp_random_role role)
{
    const flp_random_buffer *buffer = &memory->buffer[role];

    return buffer->base ? buffer->base + buffer->offset : NULL;
}

static int check_buffer(const flp_random_buffer *buffer, const char *name, char *message, size_t bytes)
{
    size_t at = 0;

    for (int64_t i = 0; i <= buffer->rows; i++) {
        const size_t end = i < buffer->rows ? buffer->offset + (size_t)(i * buffer->stride * buffer->element) : buffer->bytes;
        if (memcmp(buffer->base + at, buffer->before + at, end - at) != 0) {
            while (buffer->base[at] == buffer->before[at])
                at++;
            snprintf(message, bytes, "%s: byte %td was written, which is outside what may be", name, (ptrdiff_t)(at - buffer->offset));
            return 0;
        }
        at = end + (size_t)(buffer->columns * buffer->element);
    }
    return 1;
}

int flp_random_memory_check(const flp_random_memory *memory, char *message, size_t bytes)
{
    for (int role = 0; role < FLP_RANDOM_ROLES; role++)
        if (memory->buffer[role].before && !check_buffer(&memory->buffer[role], flp_random_role_names[role], message, bytes))
            return 0;
    return 1;
}
