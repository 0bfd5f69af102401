/* libcuda, loaded by dlopen at first use: a table of its functions, and error messages with its texts. */
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

/* The loaded and initialised driver; the first call of the process loads it. libcuda is never unloaded.
 * FLP_NO_DRIVER: not found, too old (the message names the missing symbol), cuInit failed, or no device. FLP_FORKED: this process was
 * forked from one that had initialised the driver. */
static inline flp_status flp_driver_get(const flp_driver **driver);

/* FLP_OK for CUDA_SUCCESS; else the status that fits (OUT_OF_MEMORY, NO_DRIVER, WRONG_CONTEXT, CAPTURING, CUDA_FAILED) with the message
 * "<what>: CUDA_ERROR_NAME (text, number)". */
static inline flp_status flp_driver_check(const flp_driver *driver, CUresult result, const char *what);

/* What flp_driver_get reads in each call: the driver, and the flp_library_generation() that it was loaded under. 0: no driver is loaded, or this process is a
 * forked child. */
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

/* As flp_driver_check, for a result that is not CUDA_SUCCESS. */
flp_status flp_driver_fail(const flp_driver *driver, CUresult result, const char *what);
static inline flp_status flp_driver_check(const flp_driver *driver, CUresult result, const char *what)
{
    return result == CUDA_SUCCESS ? FLP_OK : flp_driver_fail(driver, result, what);
}
#endif
