/* One case of linear_cross_entropy in device memory: copies of its buffers, and fetching what calls have written. Failures fail the test. */
#ifndef FLP_TESTS_DEVICE_LOSS_ON_DEVICE_H
#define FLP_TESTS_DEVICE_LOSS_ON_DEVICE_H
#include "cross_entropy_cases.h"
#include "device/device_case.h"
#include "device/device_test.h"

typedef struct {
    flp_device_case_buffer forward[FLP_CASE_BUFFERS], gradient[FLP_GRADIENT_BUFFERS], own[FLP_CROSS_ENTROPY_BUFFERS], workspace;
} flp_loss_on_device;

/* Copies all buffers, the outputs as they must be before a call, and points the call to the copies; no workspace. */
void flp_loss_on_device_upload(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data, flp_loss_on_device *copy, flp_cross_entropy_case_call *call);

/* Waits for the device, copies the outputs back to data, and checks that bands and inputs are unchanged. path: named in the message of a failure. */
void flp_loss_on_device_fetch(const flp_cross_entropy_case *c, const char *path, const flp_loss_on_device *copy, flp_cross_entropy_case_data *data);
/* The unit roundoff of dlogit, which is kept in the inputs' dtype. */
double flp_loss_on_device_roundoff(const flp_cross_entropy_case *c);
#endif
