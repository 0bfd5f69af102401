/* One case of linear_cross_entropy in device memory: copies of its buffers, and what calls have written. Failures fail the test. */
#ifndef FLP_TESTS_DEVICE_LOSS_ON_DEVICE_H
#define FLP_TESTS_DEVICE_LOSS_ON_DEVICE_H
#include "cross_entropy_cases.h"
#include "device/device_case.h"
#include "device/device_test.h"

typedef struct {
    flp_device_case_buffer forward[FLP_CASE_BUFFERS], gradient[FLP_GRADIENT_BUFFERS], own[FLP_CROSS_ENTROPY_BUFFERS], workspace;
} flp_loss_on_device;

/* Copies all buffers, outputs as before a call, and points the call to the copies; no workspace. */
void flp_loss_on_device_upload(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data, flp_loss_on_device *copy, flp_cross_entropy_case_call *call);

/* Waits, brings the outputs back to data, and looks at the bands around them and at the inputs. path: what a failure is said to be of. */
void flp_loss_on_device_fetch(const flp_cross_entropy_case *c, const char *path, const flp_loss_on_device *copy, flp_cross_entropy_case_data *data);
/* What dlogit, kept in the inputs' dtype, is rounded to: its unit roundoff. */
double flp_loss_on_device_roundoff(const flp_cross_entropy_case *c);
#endif
