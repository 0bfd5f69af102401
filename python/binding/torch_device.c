/* Makes a GPU's primary CUDA context current. Declarations from the CUDA driver API's manual, sections "Context Management" and "Primary Context
 * Management". */
#include "torch_device.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

typedef struct CUctx_st *CUcontext;
enum { DEVICES_MAX = 256 };

static struct {
    int (*get_current)(CUcontext *context);
    int (*get_device)(int *device);
    int (*push)(CUcontext context);
    int (*pop)(CUcontext *context);
    int (*retain)(CUcontext *context, int device);
} driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[DEVICES_MAX];

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return;
    *(void **)&driver.get_current = dlsym(library, "cuCtxGetCurrent");
    *(void **)&driver.get_device = dlsym(library, "cuCtxGetDevice");
    *(void **)&driver.push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&driver.pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **)&driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
}

/* A device's primary context: retained once and never released, because torch's runtime holds it for the life of the process too. */
static CUcontext primary_of(int ordinal)
{
    pthread_mutex_lock(&mutex);
    if (!primary[ordinal] && driver.retain(&primary[ordinal], ordinal) != 0)
        primary[ordinal] = NULL;
    pthread_mutex_unlock(&mutex);
    return primary[ordinal];
}

bool flp_torch_device_enter(int ordinal, bool *changed)
{
    CUcontext current = NULL, wanted;
    int device = -1;

    *changed = false;
    pthread_once(&once, load);
    if (!driver.get_current || !driver.get_device || !driver.push || !driver.pop || !driver.retain || ordinal < 0 || ordinal >= DEVICES_MAX)
        return false;
    /* A thread that has only got cached memory from torch has no context yet. */
    if (driver.get_current(&current) == 0 && current && driver.get_device(&device) == 0 && device == ordinal)
        return true;
    wanted = primary_of(ordinal);
    *changed = wanted && driver.push(wanted) == 0;
    return *changed;
}

void flp_torch_device_leave(bool changed)
{
    CUcontext context;

    if (changed)
        driver.pop(&context);
}
