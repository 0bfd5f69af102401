/* Describes the machine by what driver, NVML and NVRTC say of it. */
#include "tune/environment.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cuda/nvml.h"
#include "cuda/nvrtc.h"

static const char unknown[] = "unknown";

/* A text as a line of a record can hold it: printable, no blank at either end. */
static void set(char to[FLP_ENVIRONMENT_NAME_BYTES], const char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length && used + 1 < FLP_ENVIRONMENT_NAME_BYTES; i++)
        if (used || text[i] != ' ')
            to[used++] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    while (used && to[used - 1] == ' ')
        used--;
    to[used] = 0;
    if (!used)
        strcpy(to, unknown);
}

/* A part of a GPU has its profile behind this word. */
static void set_profile(flp_environment *environment)
{
    const char *profile = strstr(environment->device, " MIG ");

    profile = profile ? profile + 5 : "none";
    set(environment->mig, profile, strlen(profile));
}

/* "580.65.06": the branch is what stands before the first dot. Without NVML the version of CUDA is all there is. */
static void set_driver(flp_environment *environment)
{
    char version[FLP_NVML_VERSION_BYTES];
    const flp_driver *driver;

    if (flp_nvml_driver_version(version) == FLP_OK)
        set(environment->driver, version, strcspn(version, "."));
    else if (flp_driver_get(&driver) == FLP_OK)
        snprintf(environment->driver, sizeof(environment->driver), "cuda %d.%d", driver->version / 1000, driver->version % 1000 / 10);
    else
        strcpy(environment->driver, unknown);
}

static void set_nvrtc(flp_environment *environment)
{
    flp_nvrtc_facts facts;
    const char *build = flp_nvrtc_find(&facts) == FLP_OK ? facts.build : "none";

    set(environment->nvrtc, build, strlen(build));
}

void flp_environment_describe(const flp_device *device, flp_environment *environment)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    const flp_driver *driver;
    nvmlDevice_t handle;
    int l2_bytes = 0;

    flp_status_keep_message(callers_message);
    memset(environment, 0, sizeof(*environment));
    set(environment->device, device->facts.name, strlen(device->facts.name));
    environment->multiprocessors = device->facts.multiprocessors;
    if (flp_driver_get(&driver) == FLP_OK && driver->device_attribute(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device->device) == CUDA_SUCCESS)
        environment->l2_bytes = l2_bytes;
    if (flp_nvml_find(device->device, &handle) == FLP_OK)
        environment->power_limit_w = flp_nvml_power_limit_w(handle);
    set_profile(environment);
    set_driver(environment);
    set_nvrtc(environment);
    flp_status_restore_message(callers_message);
}

int flp_environment_same(const flp_environment *one, const flp_environment *other)
{
    return strcmp(one->device, other->device) == 0 && one->multiprocessors == other->multiprocessors && one->l2_bytes == other->l2_bytes &&
           one->power_limit_w == other->power_limit_w && strcmp(one->mig, other->mig) == 0 && strcmp(one->driver, other->driver) == 0 &&
           strcmp(one->nvrtc, other->nvrtc) == 0;
}
