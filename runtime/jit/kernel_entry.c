/* Gets a variant's image (its cubin and manifest) and loads it into CUDA contexts. */
#include "jit/kernel_entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"

/* The most shared memory, and the most blocks in a cluster, that a kernel may use before an attribute of the function has to allow more. */
enum { DEFAULT_SHARED_BYTES = 48 * 1024, PORTABLE_CLUSTER = 8 };

typedef struct flp_kernel_loaded {
    flp_kernel kernel;
    flp_device owner; /* in whose context the module is */
    CUmodule module;
    struct flp_kernel_loaded *next;
} loaded_kernel;

flp_kernel_entry *flp_kernel_entry_create(flp_kernel_origin *origin, const char *variant)
{
    flp_kernel_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    strncpy(entry->variant, variant, sizeof(entry->variant) - 1);
    entry->origin = origin;
    pthread_mutex_init(&entry->mutex, NULL);
    return entry;
}

/* Unloads a module in its CUDA context; a context that no longer exists took its modules with it. A forked child unloads nothing, since the modules are its
 * parent's. */
static void unload(const loaded_kernel *kernel)
{
    const flp_driver *driver;
    CUcontext before;

    if (flp_driver_get(&driver) != FLP_OK || !flp_device_enter(&kernel->owner, &before))
        return;
    if (driver->module_unload(kernel->module) != CUDA_SUCCESS)
        flp_log_debug("a module of %s could not be unloaded", kernel->kernel.manifest.variant);
    flp_device_leave(before);
}

void flp_kernel_entry_destroy(flp_kernel_entry *entry)
{
    while (entry->kernels) {
        loaded_kernel *next = entry->kernels->next;

        unload(entry->kernels);
        free(entry->kernels);
        entry->kernels = next;
    }
    flp_kernel_image_free(&entry->image);
    free(entry->rejection);
    pthread_mutex_destroy(&entry->mutex);
    free(entry);
}

int flp_kernel_entry_has_image(flp_kernel_entry *entry)
{
    int has;

    flp_mutex_lock(&entry->mutex);
    has = entry->has_image;
    flp_mutex_unlock(&entry->mutex);
    return has;
}

/* From here on the static functions (without the prefix flp_) expect the caller to hold the entry's mutex. */

static flp_status fill(flp_kernel_entry *entry, int anew)
{
    flp_status status;

    if (entry->has_image && !anew)
        return FLP_OK;
    if (entry->rejection)
        return flp_status_fail(FLP_COMPILE_FAILED, "%s", entry->rejection);
    flp_kernel_image_free(&entry->image);
    status = flp_kernel_obtain(entry->origin, entry->variant, anew, &entry->image);
    entry->has_image = status == FLP_OK;
    if (status == FLP_COMPILE_FAILED)
        entry->rejection = flp_text_duplicate(flp_error_message());
    return status;
}

flp_status flp_kernel_entry_fill(flp_kernel_entry *entry)
{
    flp_status status;

    flp_mutex_lock(&entry->mutex);
    status = fill(entry, 0);
    flp_mutex_unlock(&entry->mutex);
    return status;
}

static int is_rejection(CUresult result)
{
    return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_PTX ||
           result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == CUDA_ERROR_INVALID_SOURCE;
}

/* A cubin runs on GPUs of its architecture's major compute capability whose minor is not smaller than the architecture's. */
static int fits(const flp_manifest *manifest, const flp_device *device)
{
    const int arch = atoi(manifest->arch + strcspn(manifest->arch, "0123456789")), capability = device->facts.compute_capability;

    return arch / 10 == capability / 10 && arch <= capability;
}

/* A driver loads what an NVRTC of its own CUDA version or an older one made. What a newer one made fails with an error whose name says little, so the message
 * explains it. */
static flp_status check_load(const flp_driver *driver, CUresult result, const char *what)
{
    if (result != CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        return flp_driver_check(driver, result, what);
    return flp_status_fail(FLP_CUDA_FAILED,
                           "%s: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the driver, which is CUDA %d.%d's, is older than the NVRTC that made it: update the "
                           "driver, or take an NVRTC of CUDA %d.%d or older",
                           what, driver->version / 1000, driver->version % 1000 / 10, driver->version / 1000, driver->version % 1000 / 10);
}

/* Loads the PTX: the driver compiles it for the device's GPU, and keeps the result in a cache of its own. */
static flp_status load_ptx(const flp_kernel_entry *entry, const flp_driver *driver, const flp_device *device, CUmodule *module)
{
    flp_status status;

    if (!entry->image.cubin.ptx)
        return flp_status_fail(FLP_NO_VARIANT, "kernel %s: neither its cubin nor a PTX is for compute capability %d.%d", entry->variant,
                               device->facts.compute_capability / 10, device->facts.compute_capability % 10);
    flp_log_info("the driver compiles the PTX of %s", entry->variant);
    status = check_load(driver, driver->module_load(module, entry->image.cubin.ptx), "cuModuleLoadData, of PTX");
    return status == FLP_OK ? FLP_OK : flp_status_prefix(status, "kernel %s", entry->variant);
}

/* Where the driver rejects a cubin from the cache, which another compiler or machine may have stored, the kernel is compiled again. One that was compiled just
 * now is not, because the result would be the same. */
static flp_status load_module(flp_kernel_entry *entry, const flp_driver *driver, const flp_device *device, CUmodule *module)
{
    flp_status status = fill(entry, 0);
    CUresult result;

    if (status != FLP_OK)
        return status;
    if (!fits(&entry->image.manifest, device))
        return load_ptx(entry, driver, device, module);
    result = driver->module_load(module, entry->image.cubin.cubin);
    if (is_rejection(result) && !entry->image.compiled && !(entry->origin->flags & FLP_CONTEXT_NO_COMPILE)) {
        flp_log_warning("the driver rejects the cached kernel %s; it is compiled again", entry->variant);
        status = fill(entry, 1);
        if (status != FLP_OK)
            return flp_status_prefix(status, "the driver rejects the cached kernel");
        result = driver->module_load(module, entry->image.cubin.cubin);
    }
    status = check_load(driver, result, "cuModuleLoadData");
    return status == FLP_OK ? FLP_OK : flp_status_prefix(status, "kernel %s", entry->variant);
}

static flp_status find_function(const flp_driver *driver, CUmodule module, const flp_manifest *manifest, CUfunction *function)
{
    flp_status status = flp_driver_check(driver, driver->module_function(function, module, manifest->kernel), "cuModuleGetFunction");

    if (status == FLP_OK && manifest->shared_bytes > DEFAULT_SHARED_BYTES)
        status = flp_driver_check(driver, driver->function_set_attribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, manifest->shared_bytes),
                                  "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
    if (status == FLP_OK && manifest->cluster > PORTABLE_CLUSTER)
        status = flp_driver_check(driver, driver->function_set_attribute(*function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                                  "cuFuncSetAttribute(NON_PORTABLE_CLUSTER_SIZE_ALLOWED)");
    /* Loads the kernel now. With lazy loading its first launch would load it: that launch could not be captured, and would wait for running kernels. */
    if (status == FLP_OK && driver->function_load)
        status = flp_driver_check(driver, driver->function_load(*function), "cuFuncLoad");
    return status == FLP_OK ? FLP_OK : flp_status_prefix(status, "kernel %s", manifest->variant);
}

/* All blocks of a cluster run in the same part of the device (GPC). Where a part's size is not a multiple of the cluster's, some multiprocessors stay without a
 * cluster; therefore the driver is asked for the number. */
static int count_clusters(const flp_driver *driver, const flp_device *device, CUfunction function, const flp_manifest *manifest)
{
    const int blocks = device->facts.multiprocessors * manifest->resident_blocks;
    CUlaunchAttribute dimension = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { (unsigned)manifest->cluster, 1, 1 } };
    const CUlaunchConfig config = { .gridDimX = (unsigned)manifest->cluster,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = (unsigned)manifest->threads,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = (unsigned)manifest->shared_bytes,
                                    .attrs = &dimension,
                                    .numAttrs = 1 };
    int clusters;

    if (manifest->cluster > 1 && driver->active_clusters && driver->active_clusters(&clusters, function, &config) == CUDA_SUCCESS && clusters >= 1)
        return clusters;
    if (manifest->cluster > PORTABLE_CLUSTER)
        return 0; /* nothing says that this device can hold such a cluster */
    return blocks / manifest->cluster > 1 ? blocks / manifest->cluster : 1;
}

static loaded_kernel *find(const flp_kernel_entry *entry, const flp_device *device)
{
    loaded_kernel *kernel = entry->kernels;

    while (kernel && kernel->owner.context_id != device->context_id)
        kernel = kernel->next;
    return kernel;
}

static flp_status load(flp_kernel_entry *entry, const flp_device *device, loaded_kernel *kernel)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = load_module(entry, driver, device, &kernel->module);
    if (status != FLP_OK)
        return status;
    status = find_function(driver, kernel->module, &entry->image.manifest, &kernel->kernel.function);
    if (status != FLP_OK) {
        driver->module_unload(kernel->module);
        return status;
    }
    kernel->kernel.manifest = entry->image.manifest;
    kernel->kernel.clusters = count_clusters(driver, device, kernel->kernel.function, &entry->image.manifest);
    kernel->owner = *device;
    kernel->next = entry->kernels;
    entry->kernels = kernel;
    return FLP_OK;
}

const flp_kernel *flp_kernel_entry_find(flp_kernel_entry *entry, const flp_device *device)
{
    loaded_kernel *kernel;

    flp_mutex_lock(&entry->mutex);
    kernel = find(entry, device);
    flp_mutex_unlock(&entry->mutex);
    return kernel ? &kernel->kernel : NULL;
}

flp_status flp_kernel_entry_load(flp_kernel_entry *entry, const flp_device *device, const flp_kernel **kernel, int *loaded)
{
    loaded_kernel *there;
    flp_status status = FLP_OK;

    *kernel = NULL;
    *loaded = 0;
    flp_mutex_lock(&entry->mutex);
    there = find(entry, device);
    if (!there) {
        there = calloc(1, sizeof(*there));
        status = there ? load(entry, device, there) : flp_status_fail(FLP_OUT_OF_MEMORY, "kernel %s: no memory", entry->variant);
        *loaded = status == FLP_OK;
        if (status != FLP_OK) {
            free(there);
            there = NULL;
        }
    }
    flp_mutex_unlock(&entry->mutex);
    *kernel = there ? &there->kernel : NULL;
    return status;
}
