/* One case of logits_logp in device memory: copies of its buffers, executions, and fetching what they have written. Failures fail the test. */
#ifndef FLP_TESTS_DEVICE_LOGITS_ON_DEVICE_H
#define FLP_TESTS_DEVICE_LOGITS_ON_DEVICE_H
#include "device/device_test.h"
#include "logits_cases.h"

/* Must be initialised with { .c = case }. */
typedef struct {
    flp_logits_case c;
    flp_logits_data data;
    flp_logits_wanted wanted;
    CUdeviceptr base[FLP_LOGITS_ROLES];
    void *bases[FLP_LOGITS_ROLES];
} flp_logits_on_device;

void flp_logits_on_device_set_up(flp_logits_on_device *on);
void flp_logits_on_device_tear_down(flp_logits_on_device *on);

/* Poisons the results; in place, copies the logits to the buffer of the gradients. */
void flp_logits_on_device_prepare(flp_logits_on_device *on, flp_logits_form form);
/* Executes by a plan of this backend, checks the bad targets that the plan has counted, and fetches the results. */
void flp_logits_on_device_execute(flp_logits_on_device *on, flp_logits_form form, flp_backend backend);
/* Waits for the device, and copies the results back to data, guards included. */
void flp_logits_on_device_fetch(flp_logits_on_device *on);

/* The beginning of the buffer's data on the host. */
void *flp_logits_on_device_bits(const flp_logits_on_device *on, flp_logits_role role);
#endif
