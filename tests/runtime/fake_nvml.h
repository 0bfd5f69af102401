/* A fake NVML, which knows the fake driver's devices. */
#ifndef FLP_TESTS_FAKE_NVML_H
#define FLP_TESTS_FAKE_NVML_H
#include "cuda/nvml_abi.h"

typedef struct {
    nvmlReturn_t failure; /* what every function returns */
    const char *version;  /* of the driver */
    unsigned milliwatts, megahertz;
    unsigned long long millijoules, millijoules_step; /* the energy counter, and what is added to it before each reading */
    nvmlReturn_t energy_failure;                      /* what the function that reads the energy counter returns */
    char bus[32];                                     /* of the device that was asked for last */
} fake_nvml_state;

extern fake_nvml_state fake_nvml;

void fake_nvml_reset(void);
void *fake_nvml_symbol(const char *name);
#endif
