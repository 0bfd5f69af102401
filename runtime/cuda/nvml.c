/* Loads NVML at first use and queries it. */
#include "cuda/nvml.h"

#include <stddef.h>

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/library.h"

typedef struct {
#define NVML_FIELD(field, symbol, parameters) nvmlReturn_t(*field) parameters;
    FLP_NVML_FUNCTIONS(NVML_FIELD)
#undef NVML_FIELD
} nvml_table;

static nvml_table loaded;

static flp_status load(void)
{
    const flp_library_loader *loader = flp_library_loader_get();
    void *library = loader->open("libnvidia-ml.so.1");
    nvmlReturn_t result;

    if (!library)
        return flp_status_fail(FLP_NO_DRIVER, "libnvidia-ml.so.1 cannot be loaded: %s", loader->error());
#define LOAD_SYMBOL(field, exported, parameters)                                   \
    loaded.field = (nvmlReturn_t(*) parameters)loader->symbol(library, #exported); \
    if (!loaded.field)                                                             \
        return flp_status_fail(FLP_NO_DRIVER, "libnvidia-ml.so.1 has no %s", #exported);
    FLP_NVML_FUNCTIONS(LOAD_SYMBOL)
#undef LOAD_SYMBOL
    result = loaded.init();
    return result == NVML_SUCCESS ? FLP_OK : flp_status_fail(FLP_NO_DRIVER, "nvmlInit: error %d", result);
}

static flp_status get(const nvml_table **table)
{
    static flp_library_once once = { .mutex = PTHREAD_MUTEX_INITIALIZER };

    *table = &loaded;
    return flp_library_load_once(&once, load);
}

flp_status flp_nvml_driver_version(char version[FLP_NVML_VERSION_BYTES])
{
    const nvml_table *table;
    flp_status status = get(&table);
    nvmlReturn_t result;

    version[0] = 0;
    if (status != FLP_OK)
        return status;
    result = table->driver_version(version, FLP_NVML_VERSION_BYTES);
    return result == NVML_SUCCESS ? FLP_OK : flp_status_fail(FLP_NO_DRIVER, "nvmlSystemGetDriverVersion: error %d", result);
}

flp_status flp_nvml_find(CUdevice device, nvmlDevice_t *handle)
{
    const nvml_table *table;
    const flp_driver *driver;
    char bus[32];
    nvmlReturn_t result;
    flp_status status = flp_driver_get(&driver);

    *handle = NULL;
    if (status == FLP_OK)
        status = get(&table);
    if (status == FLP_OK && !driver->device_bus)
        status = flp_status_fail(FLP_NO_DRIVER, "the CUDA driver has no cuDeviceGetPCIBusId");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->device_bus(bus, sizeof(bus), device), "cuDeviceGetPCIBusId");
    if (status != FLP_OK)
        return status;
    result = table->device_of_bus(bus, handle);
    return result == NVML_SUCCESS ? FLP_OK : flp_status_fail(FLP_NO_DRIVER, "NVML does not know the device at %s: error %d", bus, result);
}

int flp_nvml_power_limit_w(nvmlDevice_t handle)
{
    const nvml_table *table;
    unsigned milliwatts = 0;

    if (!handle || get(&table) != FLP_OK || table->power_limit(handle, &milliwatts) != NVML_SUCCESS)
        return 0;
    return (int)((milliwatts + 500) / 1000);
}

double flp_nvml_clock_mhz(nvmlDevice_t handle)
{
    const nvml_table *table;
    unsigned megahertz = 0;

    return handle && get(&table) == FLP_OK && table->clock(handle, NVML_CLOCK_SM, &megahertz) == NVML_SUCCESS ? megahertz : 0;
}

flp_status flp_nvml_energy_mj(nvmlDevice_t handle, uint64_t *millijoules)
{
    const nvml_table *table;
    unsigned long long counted = 0;
    nvmlReturn_t result;
    flp_status status = get(&table);

    *millijoules = 0;
    if (status != FLP_OK)
        return status;
    result = table->energy(handle, &counted);
    if (result != NVML_SUCCESS)
        return flp_status_fail(FLP_NO_DRIVER, "NVML has no energy counter of this device: error %d", result);
    *millijoules = counted;
    return FLP_OK;
}
