/* Finds and makes calibrations. */
#include "core/calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

/* Fewer samples do not determine the five coefficients. */
enum { LEAST_SAMPLES = 12 };

flp_status flp_calibration_identify(flp_context *context, int compute_capability, flp_record_identity *identity)
{
    char *text;
    flp_status status = flp_generator_calibration_identity(flp_kernel_store_generator(context->store), &text);

    if (status != FLP_OK)
        return status;
    *identity = (flp_record_identity){ .problem = "model", .numerics = "model" };
    snprintf(identity->arch, sizeof(identity->arch), "sm_%d", compute_capability);
    flp_digest_format(text, strlen(text), identity->templates);
    flp_digest_format("", 0, identity->selection); /* of an empty list of kernels */
    free(text);
    return FLP_OK;
}

/* Finds the calibration of such a device. One of another kind of device says nothing about this one. */
static flp_status find(flp_context *context, const flp_device *device, char text[FLP_RECORD_TUNING_BYTES])
{
    flp_record_identity identity;
    flp_environment environment;
    flp_record record;
    flp_record_match match;
    flp_status status = flp_calibration_identify(context, device->facts.compute_capability, &identity);

    if (status != FLP_OK)
        return status;
    flp_environment_describe(device, &environment);
    status = flp_records_find(context->records, &identity, &environment, &record, &match);
    if (status == FLP_OK && match != FLP_RECORD_NONE && strcmp(record.environment.device, environment.device) == 0)
        memcpy(text, record.tuning, sizeof(record.tuning));
    return status;
}

static int is_calibration(void *found, const flp_record *record)
{
    return *(int *)found = strcmp(record->identity.problem, "model") == 0;
}

/* The driver gives clocks in kHz. Memory transfers twice in each clock. */
static void read_attributes(const flp_device *device, flp_model_facts *facts)
{
    const flp_driver *driver;
    int clock = 0, memory_clock = 0, bits = 0, l2_bytes = 0;

    if (flp_driver_get(&driver) != FLP_OK)
        return;
    if (driver->device_attribute(&clock, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device->device) == CUDA_SUCCESS)
        facts->clock_hz = 1e3 * clock;
    if (driver->device_attribute(&memory_clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device->device) == CUDA_SUCCESS &&
        driver->device_attribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device->device) == CUDA_SUCCESS)
        facts->memory = 2e3 * memory_clock * bits / 8;
    if (driver->device_attribute(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device->device) == CUDA_SUCCESS)
        facts->l2_bytes = l2_bytes;
}

void flp_calibration_facts(flp_context *context, const flp_device *device, flp_model_facts *facts, char text[FLP_RECORD_TUNING_BYTES])
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    int any = 0;
    flp_status status;

    flp_status_keep_message(callers_message);
    *facts = (flp_model_facts){ .multiprocessors = device->facts.multiprocessors, .calibration = text };
    text[0] = 0;
    read_attributes(device, facts);
    status = flp_records_visit(context->records, is_calibration, &any);
    if (status == FLP_OK && any)
        status = find(context, device, text);
    if (status != FLP_OK)
        flp_log_warning("the model's calibration is left out: %s", flp_error_message());
    flp_status_restore_message(callers_message);
}

/* Reads the lines of flp_generator_calibrate: the coefficients, the number of samples, and the model's error before and after, in millionths. */
static flp_status read_fit(char *fit, flp_record *record)
{
    char *rest = NULL, *coefficients = strtok_r(fit, "\n", &rest), *samples = strtok_r(NULL, "\n", &rest), *before = strtok_r(NULL, "\n", &rest);

    if (!before || !rest || strlen(coefficients) >= sizeof(record->tuning))
        return flp_status_fail(FLP_INTERNAL, "calibration: the generator gave no whole answer");
    strcpy(record->tuning, coefficients);
    record->rounds = strtoll(samples, NULL, 10);
    record->ratio = exp(1e-6 * (double)strtoll(rest, NULL, 10));
    record->ratio_low = 1;
    record->ratio_high = fmax(record->ratio, exp(1e-6 * (double)strtoll(before, NULL, 10)));
    if (record->rounds < LEAST_SAMPLES)
        return flp_status_fail(FLP_NO_VARIANT, "calibration: %lld time%s measured, wanted %d or more", (long long)record->rounds,
                               flp_text_plural(record->rounds), LEAST_SAMPLES);
    return FLP_OK;
}

flp_status flp_calibration_make(flp_context *context, const flp_device *device, const char *samples, double seconds, flp_record *record)
{
    const time_t today = time(NULL);
    flp_model_facts facts = { .multiprocessors = device->facts.multiprocessors, .calibration = "" };
    struct tm parts;
    char *fit = NULL;
    flp_status status;

    *record = (flp_record){ .seconds = seconds, .default_seconds = seconds };
    read_attributes(device, &facts);
    status = flp_generator_calibrate(flp_kernel_store_generator(context->store), samples, device->facts.compute_capability, &facts, &fit);
    if (status == FLP_OK)
        status = read_fit(fit, record);
    free(fit);
    if (status == FLP_OK)
        status = flp_calibration_identify(context, device->facts.compute_capability, &record->identity);
    if (status != FLP_OK)
        return status;
    flp_environment_describe(device, &record->environment);
    strftime(record->date, sizeof(record->date), "%Y-%m-%d", gmtime_r(&today, &parts));
    snprintf(record->version, sizeof(record->version), "%s", flp_version());
    return FLP_OK;
}
