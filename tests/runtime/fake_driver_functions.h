/* What the fake driver's files share. */
#ifndef FLP_TESTS_FAKE_DRIVER_FUNCTIONS_H
#define FLP_TESTS_FAKE_DRIVER_FUNCTIONS_H
#include "fake_driver.h"

#define FAKE_DECLARE(field, symbol, parameters) CUresult fake_cuda_##field parameters;
FLP_DRIVER_FUNCTIONS(FAKE_DECLARE)
FLP_DRIVER_OPTIONAL_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

/* Counts the call. Returns the result that the function must return at once, or CUDA_SUCCESS to go on. */
CUresult fake_driver_enter(int function);

#define ENTER(field)                                        \
    do {                                                    \
        CUresult result_ = fake_driver_enter(FAKE_##field); \
        if (result_ != CUDA_SUCCESS)                        \
            return result_;                                 \
    } while (0)

/* Unloads a context's modules, as its destruction does. */
void fake_driver_unload_modules(CUcontext context);
#endif
