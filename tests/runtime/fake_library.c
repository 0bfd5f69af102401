/* Hands out the fake libraries by name. */
#include "fake_library.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda/library.h"
#include "fake_driver.h"
#include "fake_nccl.h"
#include "fake_nvml.h"
#include "fake_nvrtc.h"

fake_library_state fake_library;

static char driver_library, nvrtc_library, builtins_library, nvml_library, nccl_library;

static void *open_fake(const char *name)
{
    size_t used = strlen(fake_library.opened);

    snprintf(fake_library.opened + used, sizeof(fake_library.opened) - used, "%s\n", name);
    if (strstr(name, "libnvrtc-builtins"))
        return &builtins_library;
    if ((strstr(name, "libcuda.so.1") && fake_library.driver == 1) || (strcmp(name, "libcuda.so") == 0 && fake_library.driver == 2))
        return &driver_library;
    /* By its bare name the loader knows version 13 only. */
    if ((strcmp(name, "libnvrtc.so.13") == 0 || strstr(name, "/libnvrtc.so")) && fake_library.nvrtc)
        return &nvrtc_library;
    if (strcmp(name, "libnvidia-ml.so.1") == 0 && fake_library.nvml)
        return &nvml_library;
    if (strcmp(name, "libnccl.so.2") == 0 && fake_library.nccl)
        return &nccl_library;
    return NULL;
}

static void *find_symbol(void *library, const char *name)
{
    if (fake_library.missing && strcmp(name, fake_library.missing) == 0)
        return NULL;
    return library == &driver_library  ? fake_driver_symbol(name)
           : library == &nvrtc_library ? fake_nvrtc_symbol(name)
           : library == &nvml_library  ? fake_nvml_symbol(name)
           : library == &nccl_library  ? fake_nccl_symbol(name)
                                       : NULL;
}

static const char *last_error(void)
{
    return "no such library here";
}

static int is_readable(const char *path)
{
    const char *root = fake_library.root;

    return root && strncmp(path, root, strlen(root)) == 0 && access(path, R_OK) == 0;
}

static const char *origin_of(void *symbol)
{
    (void)symbol;
    return fake_library.origin;
}

static const flp_library_loader fake_loader = { open_fake, find_symbol, last_error, is_readable, origin_of };

void fake_library_install(void)
{
    fake_library = (fake_library_state){ .driver = 1, .nvrtc = 1 };
    fake_driver_reset();
    fake_nvrtc_reset();
    fake_nvml_reset();
    fake_nccl_reset();
    flp_library_loader_set(&fake_loader);
}
