/* Describes the machine by what driver, NVML and NVRTC say of it. */
#include "tune/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cuda/nvml.h"
#include "cuda/nvrtc.h"

static const char unknown[] = "unknown";

/* Copies a text in a form that a line of a record can hold: printable, no blank at either end. */
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

/* The name of a MIG instance has its profile after " MIG ". */
static void set_profile(flp_environment *environment)
{
    const char *profile = strstr(environment->device, " MIG ");

    profile = profile ? profile + 5 : "none";
    set(environment->mig, profile, strlen(profile));
}

/* The branch of "580.65.06" is the part before the first dot. Without NVML only the driver's version of CUDA is known. */
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

/* 1: they differ, and text says how. */
static int words_differ(const char *what, const char *there, const char *here, char *text)
{
    if (strcmp(there, here) == 0)
        return 0;
    snprintf(text, FLP_ENVIRONMENT_DIFFERENCE_BYTES, "its %s is %.40s, here %.40s", what, there, here);
    return 1;
}

static int numbers_differ(const char *what, int64_t there, int64_t here, char *text)
{
    const int64_t numbers[] = { there, here };
    char words[2][24];

    for (int i = 0; i < 2; i++)
        if (numbers[i])
            snprintf(words[i], sizeof(words[i]), "%" PRId64, numbers[i]);
        else
            snprintf(words[i], sizeof(words[i]), "%s", unknown);
    return words_differ(what, words[0], words[1], text);
}

static int gpus_differ(const flp_environment *there, const flp_environment *here, char text[FLP_ENVIRONMENT_DIFFERENCE_BYTES])
{
    return words_differ("device", there->device, here->device, text) ||
           numbers_differ("number of multiprocessors", there->multiprocessors, here->multiprocessors, text) ||
           numbers_differ("L2 cache in bytes", there->l2_bytes, here->l2_bytes, text) ||
           numbers_differ("power limit in W", there->power_limit_w, here->power_limit_w, text) || words_differ("MIG profile", there->mig, here->mig, text);
}

void flp_environment_difference(const flp_environment *there, const flp_environment *here, char text[FLP_ENVIRONMENT_DIFFERENCE_BYTES])
{
    if (!gpus_differ(there, here, text) && !words_differ("driver", there->driver, here->driver, text) &&
        !words_differ("NVRTC", there->nvrtc, here->nvrtc, text))
        text[0] = 0;
}

int flp_environment_same_gpu(const flp_environment *one, const flp_environment *other)
{
    char text[FLP_ENVIRONMENT_DIFFERENCE_BYTES];

    return !gpus_differ(one, other, text);
}

int flp_environment_same(const flp_environment *one, const flp_environment *other)
{
    char text[FLP_ENVIRONMENT_DIFFERENCE_BYTES];

    flp_environment_difference(one, other, text);
    return !text[0];
}

/* ---- tools ---- */

/* Libraries that compute-sanitizer, Nsight Compute and Nsight Systems load into a process. */
static const char *const tool_libraries[] = { "/libsanitizer-collection.so", "/libcuda-injection.so", "/libToolsInjection64.so" };

/* Finds a process that traces this one, as gdb, cuda-gdb and strace do. */
static void find_tracer(char text[FLP_ENVIRONMENT_TOOL_BYTES])
{
    static const char field[] = "TracerPid:";
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");

    while (status && !text[0] && fgets(line, sizeof(line), status)) {
        const long tracer = strncmp(line, field, strlen(field)) == 0 ? strtol(line + strlen(field), NULL, 10) : 0;

        if (tracer)
            snprintf(text, FLP_ENVIRONMENT_TOOL_BYTES, "process %ld debugs or traces this one", tracer);
    }
    if (status)
        fclose(status);
}

static void find_library(char text[FLP_ENVIRONMENT_TOOL_BYTES])
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "re");

    while (maps && !text[0] && fgets(line, sizeof(line), maps))
        for (size_t i = 0; i < sizeof(tool_libraries) / sizeof(*tool_libraries); i++)
            if (strstr(line, tool_libraries[i]))
                snprintf(text, FLP_ENVIRONMENT_TOOL_BYTES, "a tool has loaded %s", tool_libraries[i] + 1);
    if (maps)
        fclose(maps);
}

void flp_environment_tool(char text[FLP_ENVIRONMENT_TOOL_BYTES])
{
    const char *injected = getenv("CUDA_INJECTION64_PATH");

    text[0] = 0;
    if (injected && *injected)
        snprintf(text, FLP_ENVIRONMENT_TOOL_BYTES, "CUDA_INJECTION64_PATH names %.100s, which the driver loads", injected);
    if (!text[0])
        find_library(text);
    if (!text[0])
        find_tracer(text);
}
