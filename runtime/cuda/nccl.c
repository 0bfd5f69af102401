/* Loads NCCL at first use. */
#include "cuda/nccl.h"

#include <stddef.h>

#include "base/status.h"
#include "cuda/library.h"

static flp_nccl loaded;

/* libnccl.so.2 is NCCL's SONAME. Where the process has an NCCL loaded, dlopen of that name returns it, whatever path it was loaded from. */
static flp_status load(void)
{
    const flp_library_loader *loader = flp_library_loader_get();
    void *library = loader->open("libnccl.so.2");

    if (!library)
        return flp_status_fail(FLP_NCCL_FAILED, "libnccl.so.2 cannot be loaded: %s", loader->error());
#define LOAD_SYMBOL(field, exported, result, parameters)                     \
    loaded.field = (result(*) parameters)loader->symbol(library, #exported); \
    if (!loaded.field)                                                       \
        return flp_status_fail(FLP_NCCL_FAILED, "libnccl.so.2 has no %s", #exported);
    FLP_NCCL_FUNCTIONS(LOAD_SYMBOL)
#undef LOAD_SYMBOL
#define LOAD_OPTIONAL(field, exported, result, parameters) loaded.field = (result(*) parameters)loader->symbol(library, #exported);
    FLP_NCCL_OPTIONAL_FUNCTIONS(LOAD_OPTIONAL)
#undef LOAD_OPTIONAL
    return FLP_OK;
}

flp_status flp_nccl_get(const flp_nccl **nccl)
{
    static flp_library_once once = { .mutex = PTHREAD_MUTEX_INITIALIZER };

    *nccl = &loaded;
    return flp_library_load_once(&once, load);
}

flp_status flp_nccl_check(const flp_nccl *nccl, ncclResult_t result, const char *what)
{
    return result == NCCL_SUCCESS ? FLP_OK : flp_status_fail(FLP_NCCL_FAILED, "%s: %s", what, nccl->error_string(result));
}
