/* The fake driver and NVRTC of tests/runtime, with memory, tensor maps and launches that are the host machine's. */
#include "host/host_device.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/library.h"
#include "cuda/nvrtc_abi.h"
#include "host/host_kernels.h"
#include "host/host_workspace.h"
#include "runtime/fake_driver_functions.h"
#include "runtime/fake_library.h"
#include "runtime/fake_nvrtc.h"

flp_host_device_state flp_host_device;

static char driver_library, nvrtc_library;
static nvrtcResult (*create_program)(nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *);

static void note_failure(const char *what, const char *message)
{
    if (!flp_host_device.failure[0])
        snprintf(flp_host_device.failure, sizeof(flp_host_device.failure), "%s: %s", what, message);
}

/* Allocates exactly so many bytes, so that the address sanitizer's red zone begins right after the last one. The fake driver's memory limits the total. */
static CUresult allocate(CUdeviceptr *pointer, size_t bytes)
{
    CUresult result = fake_driver_enter(FAKE_memory_allocate);
    void *memory = NULL;

    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > fake_driver.memory_bytes - (size_t)fake_driver.live_bytes || posix_memalign(&memory, 256, bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(memory, 0xff, bytes);
    flp_host_machine_add_memory(memory, bytes);
    fake_driver.live_bytes += (int64_t)malloc_usable_size(memory);
    fake_driver.live_blocks++;
    *pointer = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr pointer)
{
    void *memory = (void *)(uintptr_t)pointer;
    CUresult result = fake_driver_enter(FAKE_memory_free);

    if (result != CUDA_SUCCESS || !memory)
        return result;
    flp_host_machine_remove_memory(memory);
    fake_driver.live_bytes -= (int64_t)malloc_usable_size(memory);
    fake_driver.live_blocks--;
    free(memory);
    return CUDA_SUCCESS;
}

static CUresult encode(CUtensorMap *map, int dtype, uint32_t rank, void *address, const uint64_t *dimensions, const uint64_t *strides_bytes,
                       const uint32_t *box, const uint32_t *element_strides, int interleave, int swizzle, int l2_promotion, int fill)
{
    const flp_host_tensor tensor = { .address = address,
                                     .element_bytes = dtype == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4 : 2,
                                     .columns = dimensions[0],
                                     .rows = dimensions[1],
                                     .row_bytes = strides_bytes[0],
                                     .box_columns = box[0],
                                     .box_rows = box[1],
                                     .swizzle = swizzle };
    const char *broken = flp_host_tensor_map_encode(&tensor, map);

    (void)l2_promotion;
    if (rank != 2 || interleave || fill || element_strides[0] != 1 || element_strides[1] != 1)
        broken = "only rank 2 without interleaving, fill and element strides is modelled";
    if (broken)
        note_failure("cuTensorMapEncodeTiled", broken);
    return broken ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The first line of a source is "// fusedlogp VARIANT". */
static nvrtcResult create(nvrtcProgram *program, const char *source, const char *name, int header_count, const char *const *headers,
                          const char *const *include_names)
{
    char variant[512] = "";

    if (sscanf(source, "// fusedlogp %511s", variant) == 1)
        flp_host_kernels_make(variant);
    return create_program(program, source, name, header_count, headers, include_names);
}

static void launch(const fake_launch *launch)
{
    const char *why;
    const flp_host_kernel *kernel = flp_host_kernels_find(launch->kernel, &why);
    char message[3072];
    const flp_host_launch one = { .kernel = kernel,
                                  .grid = { launch->grid[0], launch->grid[1], launch->grid[2] },
                                  .parameters = launch->parameters,
                                  .dependent_launch = launch->dependent_launch,
                                  .seed = flp_host_device.seed++ };

    flp_host_device.launches++;
    if (flp_host_device.failure[0])
        return; /* as on a GPU, where nothing runs after a fault */
    if (!kernel)
        note_failure(launch->kernel, why);
    else if ((int)launch->block[0] != kernel->threads || (int)launch->shared_bytes != kernel->shared_bytes || launch->block[1] * launch->block[2] != 1)
        note_failure(launch->kernel, "launched with other threads or shared memory than its manifest's");
    else if (!flp_host_machine_launch(&one, message, sizeof(message)))
        note_failure(launch->kernel, message);
}

static void *open_library(const char *name)
{
    if (strstr(name, "libcuda.so"))
        return &driver_library;
    return strcmp(name, "libnvrtc.so.13") == 0 && !flp_host_device.no_nvrtc ? &nvrtc_library : NULL;
}

static void *find_symbol(void *library, const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } ours[] = {
        { "cuMemAlloc_v2", (void *)allocate },
        { "cuMemFree_v2", (void *)release },
        { "cuTensorMapEncodeTiled", (void *)encode },
        { "nvrtcCreateProgram", (void *)create },
    };

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (strcmp(name, ours[i].name) == 0)
            return ours[i].function;
    return library == &driver_library ? fake_driver_symbol(name) : fake_nvrtc_symbol(name);
}

static const char *last_error(void)
{
    return "the host device has no such library";
}

static int is_readable(const char *path)
{
    (void)path;
    return 0;
}

static const char *origin_of(void *symbol)
{
    (void)symbol;
    return NULL;
}

void flp_host_device_install(int compute_capability)
{
    static const flp_library_loader loader = { open_library, find_symbol, last_error, is_readable, origin_of };

    fake_driver_reset();
    fake_nvrtc_reset();
    *(void **)&create_program = fake_nvrtc_symbol("nvrtcCreateProgram");
    fake_driver.major = compute_capability / 10;
    fake_driver.minor = compute_capability % 10;
    fake_driver.multiprocessors = 5; /* a number that divides neither 132 nor 108, and is no multiple of a cluster's size */
    fake_driver.clusters = 1;
    if (compute_capability == 80)
        fake_driver.shared_bytes = 166912;
    fake_driver.on_launch = launch;
    flp_host_device = (flp_host_device_state){ 0 };
    flp_host_workspace_forget();
    flp_workspace_watcher = flp_host_workspace_watch;
    flp_library_loader_set(&loader);
}
