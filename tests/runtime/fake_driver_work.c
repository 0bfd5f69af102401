/* The fake driver's functions about memory, modules, launches and tensor maps. */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* a fake leaves most of what it is given alone */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver_functions.h"

struct CUmod_st {
    char *image; /* a copy */
    CUcontext context;
    CUfunction functions;
    CUmodule next;
};

struct CUfunc_st {
    char name[128];
    int shared_bytes, local_bytes;
    CUfunction next;
};

/* Threads load modules side by side. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUmodule modules;

int fake_driver_function_shared_bytes(CUfunction function)
{
    return function->shared_bytes;
}

CUresult fake_cuda_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    ENTER(memory_info);
    *total_bytes = fake_driver.memory_bytes;
    *free_bytes = fake_driver.memory_bytes - (size_t)fake_driver.live_bytes;
    return CUDA_SUCCESS;
}

/* A block's bytes stand before it; device pointers are aligned to 256 bytes as the driver's are. */
CUresult fake_cuda_memory_allocate(CUdeviceptr *pointer, size_t bytes)
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

CUresult fake_cuda_memory_free(CUdeviceptr pointer)
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

CUresult fake_cuda_memory_set(CUdeviceptr pointer, unsigned char value, size_t bytes, CUstream stream)
{
    ENTER(memory_set);
    memset((void *)(uintptr_t)pointer, value, bytes);
    return CUDA_SUCCESS;
}

CUresult fake_cuda_copy_to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER(copy_to_device);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult fake_cuda_copy_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(copy_to_host);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

/* What the fake NVRTC makes is accepted: a cubin on GPUs of its major compute capability, PTX on its own and newer ones. */
static CUresult check_image(const char *image)
{
    const int capability = 10 * fake_driver.major + fake_driver.minor;
    int arch;

    if (sscanf(image, "FAKE-CUBIN sm_%d", &arch) == 1)
        return arch / 10 == capability / 10 && arch <= capability ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (sscanf(image, "FAKE-PTX sm_%d", &arch) != 1)
        return CUDA_ERROR_INVALID_IMAGE;
    atomic_fetch_add(&fake_driver.ptx_modules, 1);
    return arch <= capability ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

CUresult fake_cuda_module_load(CUmodule *module, const void *image)
{
    ENTER(module_load);
    if (!fake_driver.current)
        return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = check_image(image);
    if (result != CUDA_SUCCESS)
        return result;
    *module = calloc(1, sizeof(**module));
    (*module)->image = strdup(image);
    (*module)->context = fake_driver.current;
    pthread_mutex_lock(&mutex);
    (*module)->next = modules;
    modules = *module;
    fake_driver.live_modules++;
    pthread_mutex_unlock(&mutex);
    return CUDA_SUCCESS;
}

/* The mutex is held. */
static void unload(CUmodule module)
{
    CUmodule *link = &modules;

    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    while (module->functions) {
        CUfunction next = module->functions->next;
        free(module->functions);
        module->functions = next;
    }
    free(module->image);
    free(module);
    fake_driver.live_modules--;
}

void fake_driver_unload_modules(CUcontext context)
{
    CUmodule next;

    pthread_mutex_lock(&mutex);
    for (CUmodule module = modules; module; module = next) {
        next = module->next;
        if (module->context == context)
            unload(module);
    }
    pthread_mutex_unlock(&mutex);
}

CUresult fake_cuda_module_unload(CUmodule module)
{
    ENTER(module_unload);
    pthread_mutex_lock(&mutex);
    unload(module);
    pthread_mutex_unlock(&mutex);
    return CUDA_SUCCESS;
}

CUresult fake_cuda_module_function(CUfunction *function, CUmodule module, const char *name)
{
    CUfunction made;

    ENTER(module_function);
    if (!strstr(module->image, name))
        return CUDA_ERROR_NOT_FOUND;
    made = calloc(1, sizeof(*made));
    snprintf(made->name, sizeof(made->name), "%s", name);
    made->local_bytes = fake_driver.local_bytes ? fake_driver.local_bytes(module->image) : 0;
    made->next = module->functions;
    module->functions = made;
    *function = made;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_function_set_attribute(CUfunction function, int attribute, int value)
{
    ENTER(function_set_attribute);
    if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
        return CUDA_SUCCESS;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > fake_driver.shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    function->shared_bytes = value;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_function_attribute(int *value, int attribute, CUfunction function)
{
    ENTER(function_attribute);
    if (!fake_driver.current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (attribute != CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    *value = function->local_bytes;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_function_load(CUfunction function)
{
    ENTER(function_load);
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult record_launch(CUfunction function, fake_launch launch)
{
    const unsigned *grid = launch.grid, *block = launch.block;

    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] || block[0] * block[1] * block[2] > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch.shared_bytes > 48 * 1024 && (int)launch.shared_bytes > function->shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake_driver.on_launch)
        fake_driver.on_launch(&launch);
    launch.parameters = NULL;
    if (fake_driver.launches < FAKE_LAUNCHES)
        fake_driver.launch[fake_driver.launches] = launch;
    fake_driver.launches++;
    fake_driver_put((fake_work){ FAKE_LAUNCHED, launch.stream, NULL, launch.kernel });
    return CUDA_SUCCESS;
}

CUresult fake_cuda_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    ENTER(launch);
    if (extra)
        return CUDA_ERROR_INVALID_VALUE;
    return record_launch(function,
                         (fake_launch){ function->name, { grid_x, grid_y, grid_z }, { block_x, block_y, block_z }, shared_bytes, stream, parameters, 0 });
}

/* As on a device of which every eighth multiprocessor is in no cluster. */
CUresult fake_cuda_active_clusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
    const CUlaunchAttribute *cluster = config->attrs;

    ENTER(active_clusters);
    if (!function || config->numAttrs != 1 || cluster->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        return CUDA_ERROR_INVALID_VALUE;
    *clusters = fake_driver.clusters ? fake_driver.clusters : fake_driver.multiprocessors / 8 * 7 / (int)cluster->value.clusterDim.x;
    return CUDA_SUCCESS;
}

CUresult fake_cuda_launch_extended(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    int dependent_launch = 0;

    ENTER(launch_extended);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            return CUDA_ERROR_INVALID_VALUE;
        dependent_launch = config->attrs[i].value.programmaticStreamSerializationAllowed;
    }
    if (extra)
        return CUDA_ERROR_INVALID_VALUE;
    return record_launch(function, (fake_launch){ function->name,
                                                  { config->gridDimX, config->gridDimY, config->gridDimZ },
                                                  { config->blockDimX, config->blockDimY, config->blockDimZ },
                                                  config->sharedMemBytes,
                                                  config->hStream,
                                                  parameters,
                                                  dependent_launch });
}

CUresult fake_cuda_tensor_map_encode_tiled(CUtensorMap *map, int dtype, uint32_t rank, void *address, const uint64_t *dimensions, const uint64_t *strides_bytes,
                                           const uint32_t *box, const uint32_t *element_strides, int interleave, int swizzle, int l2_promotion,
                                           int out_of_bounds_fill)
{
    ENTER(tensor_map_encode_tiled);
    if (rank != 2)
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0x5a, sizeof(*map));
    fake_driver.map_before = fake_driver.map;
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
