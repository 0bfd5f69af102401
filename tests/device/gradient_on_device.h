/* One case of linear_logp's backward in device memory: copies of its buffers, and fetching what a call has written. Failures fail the test. */
#ifndef FLP_TESTS_DEVICE_GRADIENT_ON_DEVICE_H
#define FLP_TESTS_DEVICE_GRADIENT_ON_DEVICE_H
#include "device/device_case.h"
#include "device/device_test.h"
#include "gradient_cases.h"

typedef struct {
    flp_device_case_buffer forward[FLP_CASE_BUFFERS], own[FLP_GRADIENT_BUFFERS], workspace;
} flp_gradient_on_device;

/* Copies all buffers, and points args to the copies; no workspace. */
void flp_gradient_on_device_upload(const flp_gradient_case *c, const flp_gradient_case_data *data, flp_gradient_on_device *copy,
                                   flp_linear_logp_backward_args *args);

/* Waits for the device, copies the gradients back to data, and checks that bands and inputs are unchanged. call: names the call in the message of a failure. */
void flp_gradient_on_device_fetch(const flp_gradient_case *c, const char *call, const flp_gradient_on_device *copy, flp_gradient_case_data *data);
#endif
