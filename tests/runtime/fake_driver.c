/* The fake driver's functions, one a driver function. */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* a fake leaves most of what it is given alone */
#include "fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUctx_st {
    unsigned long long id;
    int destroyed;
};

struct CUmod_st {
    const char *image;
    CUfunction functions;
};

struct CUfunc_st {
    char name[128];
    int shared_bytes;
    CUfunction next;
};

fake_driver_state fake_driver;

static struct CUctx_st contexts[FAKE_CONTEXTS];
static char stream_object, event_object;

void fake_driver_reset(void)
{
    memset(&fake_driver, 0, sizeof(fake_driver));
    fake_driver.version = 13000;
    fake_driver.devices = 1;
    fake_driver.major = 9;
    fake_driver.multiprocessors = 132;
    fake_driver.shared_bytes = 232448;
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
}

int fake_driver_function_shared_bytes(CUfunction function)
{
    return function->shared_bytes;
}

/* Counts the call; what to return at once, or CUDA_SUCCESS to go on. */
static CUresult enter(int function)
{
    int left = atomic_load(&fake_driver.failures[function]);

    atomic_fetch_add(&fake_driver.calls[function], 1);
    if (!left)
        return CUDA_SUCCESS;
    if (left > 0)
        atomic_fetch_sub(&fake_driver.failures[function], 1);
    return fake_driver.failure[function];
}

#define ENTER(field)                              \
    do {                                          \
        CUresult result_ = enter(FAKE_##field);   \
        if (result_ != CUDA_SUCCESS)              \
            return result_;                       \
    } while (0)

/* A function that always succeeds. */
#define NO_WORK(field, parameters)           \
    static CUresult fake_##field parameters  \
    {                                        \
        ENTER(field);                        \
        return CUDA_SUCCESS;                 \
    }

static CUresult fake_init(unsigned flags)
{
    ENTER(init);
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fake_driver_version(int *version)
{
    ENTER(driver_version);
    *version = fake_driver.version;
    return CUDA_SUCCESS;
}

static CUresult fake_error_name(CUresult result, const char **name)
{
    ENTER(error_name);
    *name = result == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CUDA_ERROR_INVALID_IMAGE   ? "CUDA_ERROR_INVALID_IMAGE"
            : result == CUDA_ERROR_INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
                                                   : NULL;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_error_string(CUresult result, const char **text)
{
    ENTER(error_string);
    *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_device_count(int *count)
{
    ENTER(device_count);
    *count = fake_driver.devices;
    return CUDA_SUCCESS;
}

static CUresult fake_device_get(CUdevice *device, int ordinal)
{
    ENTER(device_get);
    *device = ordinal;
    return CUDA_SUCCESS;
}

static CUresult fake_device_name(char *name, int bytes, CUdevice device)
{
    ENTER(device_name);
    snprintf(name, (size_t)bytes, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

static CUresult fake_device_attribute(int *value, int attribute, CUdevice device)
{
    ENTER(device_attribute);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = fake_driver.multiprocessors;
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

static CUresult fake_device_total_memory(size_t *bytes, CUdevice device)
{
    ENTER(device_total_memory);
    *bytes = fake_driver.memory_bytes;
    return CUDA_SUCCESS;
}

static CUresult fake_context_current(CUcontext *context)
{
    ENTER(context_current);
    *context = fake_driver.current;
    return CUDA_SUCCESS;
}

static CUresult fake_context_set_current(CUcontext context)
{
    ENTER(context_set_current);
    if (context && context->destroyed)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    fake_driver.current = context;
    return CUDA_SUCCESS;
}

static CUresult fake_context_device(CUdevice *device)
{
    ENTER(context_device);
    *device = 0;
    return fake_driver.current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult fake_context_id(CUcontext context, unsigned long long *id)
{
    ENTER(context_id);
    *id = context->id;
    return context->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

NO_WORK(context_synchronize, (void))

static CUresult fake_primary_retain(CUcontext *context, CUdevice device)
{
    ENTER(primary_retain);
    *context = &contexts[0];
    return CUDA_SUCCESS;
}

NO_WORK(primary_release, (CUdevice device))

static CUresult fake_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    ENTER(memory_info);
    *total_bytes = fake_driver.memory_bytes;
    *free_bytes = fake_driver.memory_bytes - (size_t)fake_driver.live_bytes;
    return CUDA_SUCCESS;
}

/* A block's bytes stand before it; device pointers are aligned to 256 bytes as the driver's are. */
static CUresult fake_memory_allocate(CUdeviceptr *pointer, size_t bytes)
{
    char *block;

    ENTER(memory_allocate);
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    block = aligned_alloc(256, (bytes + 511) / 256 * 256);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(block, &bytes, sizeof(bytes));
    fake_driver.live_bytes += (int64_t)bytes;
    fake_driver.live_blocks++;
    *pointer = (CUdeviceptr)(uintptr_t)(block + 256);
    return CUDA_SUCCESS;
}

static CUresult fake_memory_free(CUdeviceptr pointer)
{
    char *block = (char *)(uintptr_t)pointer;
    size_t bytes;

    ENTER(memory_free);
    if (!block)
        return CUDA_SUCCESS;
    memcpy(&bytes, block - 256, sizeof(bytes));
    fake_driver.live_bytes -= (int64_t)bytes;
    fake_driver.live_blocks--;
    free(block - 256);
    return CUDA_SUCCESS;
}

static CUresult fake_memory_set(CUdeviceptr pointer, unsigned char value, size_t bytes, CUstream stream)
{
    ENTER(memory_set);
    memset((void *)(uintptr_t)pointer, value, bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_copy_to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER(copy_to_device);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_copy_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(copy_to_host);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

/* What the fake NVRTC makes is accepted. */
static CUresult fake_module_load(CUmodule *module, const void *image)
{
    ENTER(module_load);
    if (!fake_driver.current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (strncmp(image, "FAKE-CUBIN ", 11) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    *module = calloc(1, sizeof(**module));
    (*module)->image = image;
    fake_driver.live_modules++;
    return CUDA_SUCCESS;
}

static CUresult fake_module_unload(CUmodule module)
{
    ENTER(module_unload);
    while (module->functions) {
        CUfunction next = module->functions->next;
        free(module->functions);
        module->functions = next;
    }
    free(module);
    fake_driver.live_modules--;
    return CUDA_SUCCESS;
}

static CUresult fake_module_function(CUfunction *function, CUmodule module, const char *name)
{
    CUfunction made;

    ENTER(module_function);
    if (!strstr(module->image, name))
        return CUDA_ERROR_NOT_FOUND;
    made = calloc(1, sizeof(*made));
    snprintf(made->name, sizeof(made->name), "%s", name);
    made->next = module->functions;
    module->functions = made;
    *function = made;
    return CUDA_SUCCESS;
}

static CUresult fake_function_set_attribute(CUfunction function, int attribute, int value)
{
    ENTER(function_set_attribute);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > fake_driver.shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    function->shared_bytes = value;
    return CUDA_SUCCESS;
}

static CUresult fake_function_load(CUfunction function)
{
    ENTER(function_load);
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                                   void **extra)
{
    fake_launch launch = { function->name, { grid_x, grid_y, grid_z }, { block_x, block_y, block_z }, shared_bytes, stream, parameters };

    ENTER(launch);
    if (extra || !grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z || block_x * block_y * block_z > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if (shared_bytes > 48 * 1024 && (int)shared_bytes > function->shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake_driver.on_launch)
        fake_driver.on_launch(&launch);
    launch.parameters = NULL;
    if (fake_driver.launches < FAKE_LAUNCHES)
        fake_driver.launch[fake_driver.launches] = launch;
    fake_driver.launches++;
    return CUDA_SUCCESS;
}

static CUresult fake_stream_create(CUstream *stream, unsigned flags)
{
    ENTER(stream_create);
    *stream = (CUstream)&stream_object;
    return CUDA_SUCCESS;
}

NO_WORK(stream_destroy, (CUstream stream))
NO_WORK(stream_synchronize, (CUstream stream))

static CUresult fake_stream_is_capturing(CUstream stream, int *status)
{
    ENTER(stream_is_capturing);
    *status = fake_driver.capture;
    return CUDA_SUCCESS;
}

static CUresult fake_event_create(CUevent *event, unsigned flags)
{
    ENTER(event_create);
    *event = (CUevent)&event_object;
    return CUDA_SUCCESS;
}

NO_WORK(event_destroy, (CUevent event))
NO_WORK(event_record, (CUevent event, CUstream stream))
NO_WORK(event_synchronize, (CUevent event))

static CUresult fake_event_elapsed(float *milliseconds, CUevent start, CUevent end)
{
    ENTER(event_elapsed);
    *milliseconds = 1;
    return CUDA_SUCCESS;
}

static CUresult fake_tensor_map_encode_tiled(CUtensorMap *map, int dtype, uint32_t rank, void *address, const uint64_t *dimensions,
                                             const uint64_t *strides_bytes, const uint32_t *box, const uint32_t *element_strides,
                                             int interleave, int swizzle, int l2_promotion, int out_of_bounds_fill)
{
    ENTER(tensor_map_encode_tiled);
    if (rank != 2)
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0x5a, sizeof(*map));
    fake_driver.map.dtype = dtype;
    fake_driver.map.rank = rank;
    fake_driver.map.address = address;
    fake_driver.map.swizzle = swizzle;
    fake_driver.map.interleave = interleave;
    fake_driver.map.l2_promotion = l2_promotion;
    fake_driver.map.fill = out_of_bounds_fill;
    fake_driver.map.stride_bytes = strides_bytes[0];
    memcpy(fake_driver.map.dimensions, dimensions, 2 * sizeof(*dimensions));
    memcpy(fake_driver.map.box, box, 2 * sizeof(*box));
    memcpy(fake_driver.map.element_strides, element_strides, 2 * sizeof(*element_strides));
    return CUDA_SUCCESS;
}

#define fake_launch fake_launch_kernel /* the table's field is called launch, as the struct is */
void *fake_driver_symbol(const char *name)
{
#define FIND_SYMBOL(field, symbol, parameters) \
    if (strcmp(name, #symbol) == 0)            \
        return (void *)fake_##field;
    FLP_DRIVER_FUNCTIONS(FIND_SYMBOL)
    FLP_DRIVER_OPTIONAL_FUNCTIONS(FIND_SYMBOL)
#undef FIND_SYMBOL
    return NULL;
}
