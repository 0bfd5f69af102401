/* libcuda by dlopen at first use: a table of its functions, and errors with its texts. */
#ifndef FLP_CUDA_DRIVER_H
#define FLP_CUDA_DRIVER_H
#include "cuda/cuda_abi.h"
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
flp_status flp_driver_get(const flp_driver **driver);

/* FLP_OK for CUDA_SUCCESS; else the status that fits (OUT_OF_MEMORY, WRONG_CONTEXT, CAPTURING, CUDA_FAILED) with the message
 * "<what>: CUDA_ERROR_NAME (text)". */
flp_status flp_driver_check(const flp_driver *driver, CUresult result, const char *what);
#endif
