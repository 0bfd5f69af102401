/* What NVML says of a device, from the state that a test has set. */
#include "fake_nvml.h"

#include <stdio.h>
#include <string.h>

fake_nvml_state fake_nvml;
static int device_here;

void fake_nvml_reset(void)
{
    fake_nvml = (fake_nvml_state){ .version = "580.65.06", .milliwatts = 700000, .megahertz = 1980 };
}

static nvmlReturn_t fake_init(void)
{
    return fake_nvml.failure;
}

static nvmlReturn_t fake_driver_version(char *version, unsigned bytes)
{
    snprintf(version, bytes, "%s", fake_nvml.version);
    return fake_nvml.failure;
}

static nvmlReturn_t fake_device_of_bus(const char *bus, nvmlDevice_t *device)
{
    snprintf(fake_nvml.bus, sizeof(fake_nvml.bus), "%s", bus);
    *device = (nvmlDevice_t)(void *)&device_here;
    return fake_nvml.failure;
}

static nvmlReturn_t fake_power_limit(nvmlDevice_t device, unsigned *milliwatts)
{
    *milliwatts = device == (nvmlDevice_t)(void *)&device_here ? fake_nvml.milliwatts : 0;
    return fake_nvml.failure;
}

static nvmlReturn_t fake_clock(nvmlDevice_t device, nvmlClockType_t type, unsigned *megahertz)
{
    *megahertz = device == (nvmlDevice_t)(void *)&device_here && type == NVML_CLOCK_SM ? fake_nvml.megahertz : 0;
    return fake_nvml.failure;
}

static nvmlReturn_t fake_energy(nvmlDevice_t device, unsigned long long *millijoules)
{
    fake_nvml.millijoules += fake_nvml.millijoules_step;
    *millijoules = device == (nvmlDevice_t)(void *)&device_here ? fake_nvml.millijoules : 0;
    return fake_nvml.failure ? fake_nvml.failure : fake_nvml.energy_failure;
}

void *fake_nvml_symbol(const char *name)
{
#define FAKE_SYMBOL(field, symbol, parameters) \
    if (strcmp(name, #symbol) == 0)            \
        return (void *)fake_##field;
    FLP_NVML_FUNCTIONS(FAKE_SYMBOL)
#undef FAKE_SYMBOL
    return NULL;
}
