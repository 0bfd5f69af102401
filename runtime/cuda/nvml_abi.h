/* The few declarations that the library uses of NVML, the management library that comes with the driver. tests/runtime/test_cuda_abi.c includes the real
 * nvml.h, defines FLP_NVML_TYPES_DECLARED and compares nvml.h with the lists below. */
#ifndef FLP_CUDA_NVML_ABI_H
#define FLP_CUDA_NVML_ABI_H

/* X(name, value) */
#define FLP_NVML_CONSTANTS(X) \
    X(NVML_SUCCESS, 0)        \
    X(NVML_CLOCK_SM, 1)

#ifndef FLP_NVML_TYPES_DECLARED
enum {
#define FLP_NVML_ENUM(name, value) name = value,
    FLP_NVML_CONSTANTS(FLP_NVML_ENUM)
#undef FLP_NVML_ENUM
};
typedef int nvmlReturn_t, nvmlClockType_t; /* enumerations, which its functions take as a C int */
typedef struct nvmlDevice_st *nvmlDevice_t;
#endif

/* X(field, symbol, parameters): the table that cuda/nvml.c fills. */
#define FLP_NVML_FUNCTIONS(X)                                                                          \
    X(init, nvmlInit_v2, (void))                                                                       \
    X(driver_version, nvmlSystemGetDriverVersion, (char *version, unsigned bytes))                     \
    X(device_of_bus, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, nvmlDevice_t *device))        \
    X(power_limit, nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned *milliwatts))       \
    X(clock, nvmlDeviceGetClockInfo, (nvmlDevice_t device, nvmlClockType_t type, unsigned *megahertz)) \
    X(energy, nvmlDeviceGetTotalEnergyConsumption, (nvmlDevice_t device, unsigned long long *millijoules))
#endif
