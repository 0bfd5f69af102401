/* Compiles the kernels of many cases in parallel, before the cases run one by one. */
#ifndef FLP_TESTS_DEVICE_WARM_UP_H
#define FLP_TESTS_DEVICE_WARM_UP_H

/* Calls make(0) .. make(count - 1) from as many threads as there are cores, each with the GPU's context current. A failure is reported by the
 * test that needs the kernel. */
void flp_device_warm_up(int count, void (*make)(int index));
#endif
