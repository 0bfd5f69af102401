/* One case on the device with its plan, for tests of execution rather than of numbers. */
#ifndef FLP_TESTS_DEVICE_FIXTURE_H
#define FLP_TESTS_DEVICE_FIXTURE_H
#include "device/device_case.h"
#include "device/device_test.h"

enum { FLP_FIXTURE_ROWS = 512, FLP_FIXTURE_NON_BLOCKING = 1 /* CU_STREAM_NON_BLOCKING */ };

typedef struct {
    flp_case c;
    flp_case_data data;
    flp_device_case on_device;
    flp_linear_logp_args args; /* with a workspace, on stream */
    flp_plan *plan;
    CUstream stream;
    uint32_t expected[FLP_FIXTURE_ROWS]; /* the bits of logp */
} flp_fixture;

/* Uses the current CUDA context. Executes once to get `expected`, and poisons the outputs again. */
void flp_fixture_set_up(flp_fixture *f);
void flp_fixture_tear_down(flp_fixture *f);

void flp_fixture_poison(flp_fixture *f);
/* These wait for the device. */
void flp_fixture_fetch(const flp_fixture *f, uint32_t *logp);
void flp_fixture_expect_result(const flp_fixture *f);
void flp_fixture_expect_nothing_written(const flp_fixture *f);
#endif
