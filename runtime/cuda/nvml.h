/* NVML by dlopen: the driver's version, and a device's power limit, clock and energy, which CUDA does not tell. NVML may be missing where CUDA works. */
#ifndef FLP_CUDA_NVML_H
#define FLP_CUDA_NVML_H
#include <stdint.h>

#include "cuda/cuda_abi.h"
#include "cuda/nvml_abi.h"
#include "fusedlogp.h"

enum { FLP_NVML_VERSION_BYTES = 80 };

/* The driver's version: "580.65.06". FLP_NO_DRIVER: there is no NVML. */
flp_status flp_nvml_driver_version(char version[FLP_NVML_VERSION_BYTES]);

/* NVML's handle of a device; where the device is a part of a GPU, the handle of the whole GPU. FLP_NO_DRIVER: there is no NVML, or it does not know the
 * device. */
flp_status flp_nvml_find(CUdevice device, nvmlDevice_t *handle);

/* The enforced power limit in watts, and the current clock of the multiprocessors in MHz; 0 where NVML does not tell. handle may be NULL. */
int flp_nvml_power_limit_w(nvmlDevice_t handle);
double flp_nvml_clock_mhz(nvmlDevice_t handle);

/* The energy in millijoules that the device has used since the driver was loaded. FLP_NO_DRIVER: there is no NVML, or the device has no energy counter (GPUs
 * before Volta have none). */
flp_status flp_nvml_energy_mj(nvmlDevice_t handle, uint64_t *millijoules);
#endif
