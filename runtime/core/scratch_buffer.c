/* One buffer of the shared scratch: growing, freeing, and the event after its last use. */
#include "core/scratch_buffer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"
#include "cuda/device.h"

struct flp_scratch_retired {
    CUdeviceptr address;
    flp_scratch_retired *next;
};

/* Stops at memory that cannot be freed: it stays in the list. */
static flp_status free_retired(flp_scratch_buffer *buffer)
{
    flp_status status = FLP_OK;

    while (buffer->retired && status == FLP_OK) {
        flp_scratch_retired *first = buffer->retired;

        status = flp_device_memory_release(&buffer->device, first->address);
        if (status == FLP_OK) {
            buffer->retired = first->next;
            free(first);
        }
    }
    return status;
}

static void forget(flp_scratch_buffer *buffer)
{
    buffer->address = 0;
    buffer->bytes = 0;
    buffer->in_graph = 0;
}

/* Gives up the memory. It is freed at once if only the stream used it; if a graph may use it again, it is kept until the graphs' memory is released. */
static flp_status outgrow(flp_scratch_buffer *buffer, CUstream stream)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK && buffer->in_graph) {
        flp_scratch_retired *kept = malloc(sizeof(*kept));
        if (!kept)
            return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory to keep a captured scratch");
        *kept = (flp_scratch_retired){ buffer->address, buffer->retired };
        buffer->retired = kept;
    } else if (status == FLP_OK && buffer->address) {
        status = flp_driver_check(driver, driver->stream_synchronize(stream), "cuStreamSynchronize");
        if (status == FLP_OK)
            status = flp_device_memory_release(&buffer->device, buffer->address);
    }
    if (status == FLP_OK)
        forget(buffer);
    return status;
}

flp_status flp_scratch_buffer_refuse_capture(int64_t has, int64_t wanted)
{
    return flp_status_fail(FLP_CAPTURING,
                           "the stream is captured and its scratch has %" PRId64 " bytes, wanted %" PRId64
                           ": prepare the problem before the capture, or pass a workspace",
                           has, wanted);
}

flp_status flp_scratch_buffer_provide(flp_scratch_buffer *buffer, CUstream stream, int capturing, int64_t bytes, int64_t grown)
{
    flp_status status;

    if (buffer->bytes < bytes) {
        if (capturing)
            return flp_scratch_buffer_refuse_capture(buffer->bytes, bytes);
        status = outgrow(buffer, stream);
        if (status == FLP_OK)
            status = flp_device_memory_allocate(grown, "the shared scratch", &buffer->address);
        if (status != FLP_OK)
            return status;
        buffer->bytes = grown;
    }
    buffer->in_graph |= capturing;
    return FLP_OK;
}

void flp_scratch_buffer_record(flp_scratch_buffer *buffer, CUstream stream)
{
    const flp_driver *driver;

    buffer->recorded = 0;
    if (flp_driver_get(&driver) != FLP_OK)
        return;
    if (!buffer->passed && driver->event_create(&buffer->passed, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        buffer->passed = NULL;
        return;
    }
    buffer->recorded = driver->event_record(buffer->passed, stream) == CUDA_SUCCESS;
}

flp_status flp_scratch_buffer_order(flp_scratch_buffer *buffer, CUstream stream)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    return status == FLP_OK ? flp_driver_check(driver, driver->stream_wait_event(stream, buffer->passed, 0), "cuStreamWaitEvent") : status;
}

static void destroy_event(flp_scratch_buffer *buffer)
{
    const flp_driver *driver;
    CUcontext left;

    if (buffer->passed && flp_driver_get(&driver) == FLP_OK && flp_device_enter(&buffer->device, &left)) {
        driver->event_destroy(buffer->passed);
        flp_device_leave(left);
    }
    buffer->passed = NULL;
    buffer->recorded = 0;
}

/* After a failure, what was not freed is still the buffer's. */
static flp_status free_memory(flp_scratch_buffer *buffer, int of_graphs)
{
    flp_status status = of_graphs ? free_retired(buffer) : FLP_OK;

    if (status != FLP_OK || (buffer->in_graph && !of_graphs))
        return status;
    status = flp_device_memory_release(&buffer->device, buffer->address);
    if (status == FLP_OK)
        forget(buffer);
    return status;
}

int flp_scratch_buffer_is_empty(const flp_scratch_buffer *buffer)
{
    return !buffer->address && !buffer->retired;
}

flp_status flp_scratch_buffer_release(flp_scratch_buffer *buffer, int of_graphs)
{
    flp_status status = FLP_OK;
    CUcontext left;

    if (flp_device_enter(&buffer->device, &left)) {
        status = flp_device_synchronize();
        flp_device_leave(left);
    }
    if (status == FLP_OK)
        status = free_memory(buffer, of_graphs);
    if (status == FLP_OK && flp_scratch_buffer_is_empty(buffer))
        destroy_event(buffer);
    return status;
}

void flp_scratch_buffer_destroy(flp_scratch_buffer *buffer)
{
    for (flp_scratch_retired *next; buffer->retired; buffer->retired = next) {
        next = buffer->retired->next;
        flp_device_memory_free(&buffer->device, buffer->retired->address);
        free(buffer->retired);
    }
    flp_device_memory_free(&buffer->device, buffer->address);
    destroy_event(buffer);
    pthread_mutex_destroy(&buffer->lent);
    free(buffer);
}
