/* A device that is the host machine (the GPU simulator): the library plans, compiles, loads and launches as on a GPU, and kernels run on the CPU. */
#ifndef FLP_TESTS_HOST_DEVICE_H
#define FLP_TESTS_HOST_DEVICE_H
#include "device/gpu.h"

typedef struct {
    uint64_t seed; /* of the next launch's interleaving; each launch takes another */
    int launches;
    int no_nvrtc;       /* 1: NVRTC is not installed; set after flp_host_device_install */
    char failure[4096]; /* the rule that the first failing launch since flp_host_suite_begin broke; "": none did */
} flp_host_device_state;

extern flp_host_device_state flp_host_device;

/* Replaces libcuda and NVRTC. There is one device of the compute capability (80 or 90), with few multiprocessors and an empty memory. When the library calls
 * NVRTC to compile a kernel, the kernel is compiled for the host. Device pointers are host pointers. */
void flp_host_device_install(int compute_capability);
#endif
