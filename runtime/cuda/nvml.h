/* NVML by dlopen: what the driver tells of a device beside CUDA. It may be missing where CUDA works. */
#ifndef FLP_CUDA_NVML_H
#define FLP_CUDA_NVML_H
#include <stdint.h>

#include "cuda/cuda_abi.h"
#include "cuda/nvml_abi.h"
#include "fusedlogp.h"

enum { FLP_NVML_VERSION_BYTES = 80 };

/* The driver's version: "580.65.06". FLP_NO_DRIVER: there is no NVML. */
flp_status flp_nvml_driver_version(char version[FLP_NVML_VERSION_BYTES]);

/* NVML's handle of a device; of the whole GPU where the device is a part of one. FLP_NO_DRIVER: there is no NVML, or it does not know the device. */
flp_status flp_nvml_find(CUdevice device, nvmlDevice_t *handle);

/* What the device is held to, in watts, and how fast its multiprocessors run now, in MHz; 0: NVML does not say. */
int flp_nvml_power_limit_w(nvmlDevice_t handle);
double flp_nvml_clock_mhz(nvmlDevice_t handle);

/* What the device has used since its driver was loaded. FLP_NO_DRIVER: it has no such counter, which came with Volta. */
flp_status flp_nvml_energy_mj(nvmlDevice_t handle, uint64_t *millijoules);
#endif
