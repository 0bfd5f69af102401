/* libcuda by dlopen at first use: a table of its functions, and errors with its texts. */
#ifndef FLP_CUDA_DRIVER_H
#define FLP_CUDA_DRIVER_H
#include "cuda/cuda_abi.h"
#include "cuda/library.h"
#include "fusedlogp.h"

typedef struct {
#define FLP_DRIVER_FIELD(field, symbol, parameters) CUresult(*field) parameters;
    FLP_DRIVER_FUNCTIONS(FLP_DRIVER_FIELD)
    FLP_DRIVER_OPTIONAL_FUNCTIONS(FLP_DRIVER_FIELD)
#undef FLP_DRIVER_FIELD
    int version; /* e.g. 13000 */
} flp_driver;

/* The loaded and initialised driver; loads it once for the process. The lib itself stays loaded.
 * FLP_NO_DRIVER: not found, too old (names the missing symbol), cuInit failed, or no device. FLP_FORKED: this process was
 * forked from one that had initialised it. */
static inline flp_status flp_driver_get(const flp_driver **driver);

/* FLP_OK for CUDA_SUCCESS; else the status that fits (OUT_OF_MEMORY, WRONG_CONTEXT, CAPTURING, CUDA_FAILED) with the message
 * "<what>: CUDA_ERROR_NAME (text)". */
static inline flp_status flp_driver_check(const flp_driver *driver, CUresult result, const char *what);

/* What flp_driver_get looks at in each call: the driver, and the number of the loader that it came by; 0: there is none, or this is a forked child. */
extern flp_driver flp_driver_loaded;
extern atomic_uint flp_driver_generation;
flp_status flp_driver_load(const flp_driver **driver);
static inline flp_status flp_driver_get(const flp_driver **driver)
{
    if (atomic_load_explicit(&flp_driver_generation, memory_order_acquire) != flp_library_generation())
        return flp_driver_load(driver);
    *driver = &flp_driver_loaded;
    return FLP_OK;
}

/* result: not CUDA_SUCCESS. */
flp_status flp_driver_fail(const flp_driver *driver, CUresult result, const char *what);
static inline flp_status flp_driver_check(const flp_driver *driver, CUresult result, const char *what)
{
    return result == CUDA_SUCCESS ? FLP_OK : flp_driver_fail(driver, result, what);
}
#endif
