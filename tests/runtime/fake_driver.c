/* The fake driver: its state, and the functions about devices, contexts, streams and events. */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* a fake leaves most of what it is given alone */
#include "fake_driver_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUctx_st {
    unsigned long long id;
    int destroyed;
};

struct CUevent_st {
    unsigned long long recorded_on; /* the stream's id */
};

fake_driver_state fake_driver;

static struct CUctx_st contexts[FAKE_CONTEXTS];
static char stream_object;

void fake_driver_reset(void)
{
    memset(&fake_driver, 0, sizeof(fake_driver));
    fake_driver.version = 13000;
    fake_driver.devices = 1;
    fake_driver.major = 9;
    fake_driver.multiprocessors = 132;
    fake_driver.shared_bytes = 232448;
    fake_driver.l2_bytes = 52428800;
    fake_driver.memory_bytes = (size_t)80 << 30;
    for (int i = 0; i < FAKE_CONTEXTS; i++)
        contexts[i] = (struct CUctx_st){ .id = 1000 + (unsigned)i };
    fake_driver.current = &contexts[0];
}

void fake_driver_fail(int function, CUresult result, int times)
{
    fake_driver.failure[function] = result;
    atomic_store(&fake_driver.failures[function], times);
}

CUcontext fake_driver_context(int number)
{
    return &contexts[number];
}

void fake_driver_destroy_context(int number)
{
    contexts[number].destroyed = 1;
    fake_driver_unload_modules(&contexts[number]);
}

CUresult fake_driver_enter(int function)
{
    int left = atomic_load(&fake_driver.failures[function]);

    atomic_fetch_add(&fake_driver.calls[function], 1);
    if (fake_driver.on_call)
        fake_driver.on_call(function);
    if (!left)
        return CUDA_SUCCESS;
    if (left > 0)
        atomic_fetch_sub(&fake_driver.failures[function], 1);
    return fake_driver.failure[function];
}

/* A function that always succeeds. */
#define NO_WORK(field, parameters)        \
    CUresult fake_cuda_##field parameters \
    {                                     \
        ENTER(field);                     \
        return CUDA_SUCCESS;              \
    }

CUresult fake_cuda_init(unsigned flags)
{
    ENTER(init);
    if (fake_driver.on_init)
        fake_driver.on_init();
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult fake_cuda_driver_version(int *version)
{
    ENTER(driver_version);
    *version = fake_driver.version;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_error_name(CUresult result, const char **name)
{
    ENTER(error_name);
    *name = result == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CUDA_ERROR_INVALID_IMAGE   ? "CUDA_ERROR_INVALID_IMAGE"
            : result == CUDA_ERROR_INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
                                                   : NULL;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_cuda_error_string(CUresult result, const char **text)
{
    ENTER(error_string);
    *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_cuda_device_count(int *count)
{
    ENTER(device_count);
    *count = fake_driver.devices;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_device_get(CUdevice *device, int ordinal)
{
    ENTER(device_get);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_device_name(char *name, int bytes, CUdevice device)
{
    ENTER(device_name);
    if (fake_driver.name)
        snprintf(name, (size_t)bytes, "%s", fake_driver.name);
    else
        snprintf(name, (size_t)bytes, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult fake_cuda_device_attribute(int *value, int attribute, CUdevice device)
{
    ENTER(device_attribute);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = fake_driver.multiprocessors;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = fake_driver.clock_khz;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        *value = fake_driver.memory_clock_khz;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *value = fake_driver.memory_bits;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = fake_driver.l2_bytes;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = fake_driver.major;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = fake_driver.minor;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = fake_driver.shared_bytes;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_cuda_device_bus(char *bus, int bytes, CUdevice device)
{
    ENTER(device_bus);
    snprintf(bus, (size_t)bytes, "0000:%02x:00.0", 0x40 + device);
    return CUDA_SUCCESS;
}

CUresult fake_cuda_device_total_memory(size_t *bytes, CUdevice device)
{
    ENTER(device_total_memory);
    *bytes = fake_driver.memory_bytes;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_context_current(CUcontext *context)
{
    ENTER(context_current);
    *context = fake_driver.current;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_context_set_current(CUcontext context)
{
    ENTER(context_set_current);
    if (context && context->destroyed)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    fake_driver.current = context;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_context_device(CUdevice *device)
{
    ENTER(context_device);
    *device = 0;
    return fake_driver.current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult fake_cuda_context_id(CUcontext context, unsigned long long *id)
{
    ENTER(context_id);
    *id = context->id;
    return context->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

NO_WORK(context_synchronize, (void))

CUresult fake_cuda_primary_retain(CUcontext *context, CUdevice device)
{
    ENTER(primary_retain);
    *context = &contexts[0];
    return CUDA_SUCCESS;
}

NO_WORK(primary_release, (CUdevice device))

CUresult fake_cuda_stream_create(CUstream *stream, unsigned flags)
{
    ENTER(stream_create);
    *stream = (CUstream)&stream_object;
    return CUDA_SUCCESS;
}

NO_WORK(stream_destroy, (CUstream stream))
NO_WORK(stream_synchronize, (CUstream stream))

CUresult fake_cuda_stream_is_capturing(CUstream stream, int *status)
{
    ENTER(stream_is_capturing);
    *status = fake_driver.capture;
    return CUDA_SUCCESS;
}

unsigned long long fake_driver_stream_id(CUstream stream)
{
    return (unsigned long long)(uintptr_t)stream * 1024 + fake_driver.stream_age;
}

CUresult fake_cuda_stream_id(CUstream stream, unsigned long long *id)
{
    ENTER(stream_id);
    if (fake_driver.capture) /* seen on an H200 with driver 580 */
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    *id = fake_driver_stream_id(stream);
    return CUDA_SUCCESS;
}

/* ---- the order of what is put on streams ---- */

void fake_driver_put(fake_work work)
{
    if (!fake_driver.keeps_works)
        return;
    if (fake_driver.works < FAKE_WORKS)
        fake_driver.work[fake_driver.works] = work;
    fake_driver.works++;
}

enum { MOST_OBJECTS = 8 };
typedef struct {
    const void *object[MOST_OBJECTS];
    uint64_t seen[MOST_OBJECTS];
    int count;
} seen_by;

static uint64_t *seen_of(seen_by *all, const void *object)
{
    int i = 0;

    while (i < all->count && all->object[i] != object)
        i++;
    if (i == MOST_OBJECTS)
        abort();
    if (i == all->count)
        all->object[all->count++] = object;
    return &all->seen[i];
}

uint64_t fake_driver_behind(int works, CUstream stream)
{
    seen_by streams = { .count = 0 }, events = { .count = 0 };

    for (int i = 0; i < works && i < FAKE_WORKS; i++) {
        const fake_work *work = &fake_driver.work[i];
        uint64_t *seen = seen_of(&streams, work->stream);

        if (work->kind == FAKE_RECORDED)
            *seen_of(&events, work->event) = *seen;
        else if (work->kind == FAKE_WAITED)
            *seen |= *seen_of(&events, work->event);
        else
            *seen |= UINT64_C(1) << i;
    }
    return *seen_of(&streams, stream);
}

int fake_driver_last_work(const char *kernel)
{
    for (int i = (fake_driver.works < FAKE_WORKS ? fake_driver.works : FAKE_WORKS) - 1; i >= 0; i--)
        if (fake_driver.work[i].kind == FAKE_LAUNCHED && strstr(fake_driver.work[i].kernel, kernel))
            return i;
    return -1;
}

CUresult fake_cuda_stream_wait_event(CUstream stream, CUevent event, unsigned flags)
{
    ENTER(stream_wait_event);
    fake_driver_put((fake_work){ FAKE_WAITED, stream, event, NULL });
    fake_driver.wait = (fake_wait){ fake_driver_stream_id(stream), event->recorded_on };
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult fake_cuda_event_create(CUevent *event, unsigned flags)
{
    ENTER(event_create);
    *event = calloc(1, sizeof(**event));
    fake_driver.live_events++;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_event_destroy(CUevent event)
{
    ENTER(event_destroy);
    free(event);
    fake_driver.live_events--;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_event_record(CUevent event, CUstream stream)
{
    ENTER(event_record);
    fake_driver_put((fake_work){ FAKE_RECORDED, stream, event, NULL });
    event->recorded_on = fake_driver_stream_id(stream);
    return CUDA_SUCCESS;
}

NO_WORK(event_synchronize, (CUevent event))

CUresult fake_cuda_event_elapsed(float *milliseconds, CUevent start, CUevent end)
{
    ENTER(event_elapsed);
    *milliseconds = 1;
    return CUDA_SUCCESS;
}

void *fake_driver_symbol(const char *name)
{
#define FIND_SYMBOL(field, symbol, parameters) \
    if (strcmp(name, #symbol) == 0)            \
        return (void *)fake_cuda_##field;
    FLP_DRIVER_FUNCTIONS(FIND_SYMBOL)
    FLP_DRIVER_OPTIONAL_FUNCTIONS(FIND_SYMBOL)
#undef FIND_SYMBOL
    return NULL;
}
