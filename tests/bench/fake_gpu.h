/* The benchmarks' GPU on a driver without a device, whose kernels a test computes. */
#ifndef FLP_TESTS_BENCH_FAKE_GPU_H
#define FLP_TESTS_BENCH_FAKE_GPU_H
#include <jansson.h>

#include "device/gpu.h"
#include "runtime/fake_driver.h"

extern flp_gpu fake_gpu;
extern json_t *fake_gpu_result; /* of the case that ran last; freed by fake_gpu_stop */

/* For cmocka's setup, after which on_launch computes, and teardown. */
void fake_gpu_start(void (*on_launch)(const fake_launch *launch));
int fake_gpu_stop(void **state);
#endif
