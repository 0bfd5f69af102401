/* Loads libcuda once for the process, and converts its CUresult values to flp_status. */
#include "cuda/driver.h"

#include <pthread.h>
#include <stddef.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
flp_driver flp_driver_loaded;
atomic_uint flp_driver_generation; /* written under the mutex */
static unsigned forked_generation; /* generation of the driver that this process's parent had initialised before the fork; 0: none */

/* 1 while this thread initialises the driver and holds the mutex. cuInit may fork: it starts nvidia-modprobe if a device file is missing. */
static _Thread_local int loading;

/* Fork handlers detect a fork at no cost for calls of the library; comparing getpid() would cost each call a system call. */
static void lock_before_fork(void)
{
    if (!loading)
        flp_mutex_lock(&mutex);
}

static void unlock_after_fork(void)
{
    if (!loading)
        flp_mutex_unlock(&mutex);
}

static void mark_child(void)
{
    if (loading)
        return; /* the driver's own child, which starts another program */
    if (atomic_load(&flp_driver_generation) == flp_library_generation())
        forked_generation = atomic_exchange(&flp_driver_generation, 0);
    flp_mutex_unlock(&mutex);
}

static void watch_forks(void)
{
    static int watching;

    if (!watching)
        watching = pthread_atfork(lock_before_fork, unlock_after_fork, mark_child) == 0;
}

static flp_status no_driver(CUresult result, const char *what)
{
    flp_driver_fail(&flp_driver_loaded, result, what);
    return flp_status_prefix(FLP_NO_DRIVER, "the CUDA driver does not start");
}

static flp_status initialise(void)
{
    CUresult result = flp_driver_loaded.init(0);
    int devices = 0;

    if (result == CUDA_SUCCESS)
        result = flp_driver_loaded.driver_version(&flp_driver_loaded.version);
    if (result != CUDA_SUCCESS)
        return no_driver(result, "cuInit");
    result = flp_driver_loaded.device_count(&devices);
    if (result != CUDA_SUCCESS)
        return no_driver(result, "cuDeviceGetCount");
    if (devices < 1)
        return flp_status_fail(FLP_NO_DRIVER, "the CUDA driver %d.%d shows no device", flp_driver_loaded.version / 1000, flp_driver_loaded.version % 1000 / 10);
    flp_log_info("CUDA driver %d.%d, %d device%s", flp_driver_loaded.version / 1000, flp_driver_loaded.version % 1000 / 10, devices, flp_text_plural(devices));
    return FLP_OK;
}

static flp_status load(void)
{
    const flp_library_loader *loader = flp_library_loader_get();
    const char *name = "libcuda.so.1";
    void *library = loader->open(name);

    if (!library) {
        char callers_message[FLP_STATUS_MESSAGE_BYTES];
        flp_status_keep_message(callers_message);
        flp_status_fail(FLP_NO_DRIVER, "%s", loader->error());
        name = "libcuda.so";
        library = loader->open(name);
        if (library)
            flp_status_restore_message(callers_message);
    }
    if (!library)
        return flp_status_prefix(FLP_NO_DRIVER, "neither libcuda.so.1 nor libcuda.so can be loaded");
#define LOAD_SYMBOL(field, exported, parameters)                                          \
    flp_driver_loaded.field = (CUresult(*) parameters)loader->symbol(library, #exported); \
    if (!flp_driver_loaded.field)                                                         \
        return flp_status_fail(FLP_NO_DRIVER, "%s has no %s: the CUDA driver is too old, 12.0 or newer is wanted", name, #exported);
    FLP_DRIVER_FUNCTIONS(LOAD_SYMBOL)
#undef LOAD_SYMBOL
#define LOAD_OPTIONAL(field, exported, parameters) flp_driver_loaded.field = (CUresult(*) parameters)loader->symbol(library, #exported);
    FLP_DRIVER_OPTIONAL_FUNCTIONS(LOAD_OPTIONAL)
#undef LOAD_OPTIONAL
    return initialise();
}

static flp_status load_once(unsigned generation)
{
    flp_status status;

    if (forked_generation == generation)
        return flp_status_fail(FLP_FORKED, "this process was forked from one that used CUDA, which the driver does not allow; "
                                           "fork first, or start a new program");
    if (atomic_load(&flp_driver_generation) == generation)
        return FLP_OK;
    watch_forks();
    loading = 1;
    status = load();
    loading = 0;
    if (status == FLP_OK)
        atomic_store(&flp_driver_generation, generation);
    return status;
}

/* After a failure the next call looks for the driver again, because it may have been installed or started since. */
flp_status flp_driver_load(const flp_driver **driver)
{
    flp_status status;

    flp_mutex_lock(&mutex);
    status = load_once(flp_library_generation());
    flp_mutex_unlock(&mutex);
    *driver = status == FLP_OK ? &flp_driver_loaded : NULL;
    return status;
}

static flp_status status_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return FLP_OUT_OF_MEMORY;
    case CUDA_ERROR_NO_DEVICE:
        return FLP_NO_DRIVER;
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return FLP_WRONG_CONTEXT;
    }
    if (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return FLP_CAPTURING;
    return FLP_CUDA_FAILED;
}

flp_status flp_driver_fail(const flp_driver *driver, CUresult result, const char *what)
{
    const char *name = NULL, *text = NULL;

    if (driver->error_name(result, &name) != CUDA_SUCCESS || !name)
        name = "an unknown CUresult";
    if (driver->error_string(result, &text) != CUDA_SUCCESS || !text)
        text = "no text";
    return flp_status_fail(status_of(result), "%s: %s (%s, %d)", what, name, text, result);
}
